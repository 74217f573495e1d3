//! Units of systemd: a service and a timer for each command.

use super::ScheduleError;
use super::job::Job;
use super::tool::{ToolError, run};
use crate::environment;
use crate::profile::SCHEDULED;
use crate::run::replace;
use std::path::{Path, PathBuf};

/// Folder of the system's units.
const SYSTEM_UNITS: &str = "/etc/systemd/system";
/// Time by which runs are delayed by chance, so that many machines do not come at once.
const DELAY_MAX: &str = "15min";

/// The system's systemd, or a user's own.
pub(super) struct Systemd {
    folder: PathBuf,
    pub(super) is_user: bool,
}

impl Systemd {
    pub(super) fn new(is_user: bool) -> Result<Self, ScheduleError> {
        let own = || Some(environment::config_folder()?.parent()?.join("systemd/user"));
        let folder = if is_user { own().ok_or(ScheduleError::NoHome)? } else { SYSTEM_UNITS.into() };
        Ok(Self { folder, is_user })
    }

    /// Installs jobs in the place of those that the profile had.
    pub(super) fn install(&self, profile: &str, jobs: &[Job]) -> Result<(), ScheduleError> {
        jobs.iter().try_for_each(check)?;
        let is_gone = |command: &&str| jobs.iter().all(|job| job.command != **command);
        let gone: Vec<&str> = SCHEDULED.into_iter().filter(|command| is_gone(command)).collect();
        self.remove_units(profile, &gone)?;
        std::fs::create_dir_all(&self.folder).map_err(|source| not_written(&self.folder, source))?;
        for job in jobs {
            for (ending, text) in [("service", self.service(job)), ("timer", timer(job))] {
                let path = self.folder.join(unit(profile, &job.command, ending));
                replace(&path, text, 0o644).map_err(|source| not_written(&path, source))?;
            }
        }
        self.systemctl(&["daemon-reload"])?;
        for job in jobs {
            let timer = unit(profile, &job.command, "timer");
            self.systemctl(&["enable", &timer])?;
            // One that runs already goes by its new times.
            self.systemctl(&["restart", &timer])?;
        }
        Ok(())
    }

    /// Removes what the profile has. Returns whether there was anything.
    pub(super) fn remove(&self, profile: &str) -> Result<bool, ScheduleError> {
        let had_units = self.remove_units(profile, &SCHEDULED)?;
        if had_units {
            self.systemctl(&["daemon-reload"])?;
        }
        Ok(had_units)
    }

    fn remove_units(&self, profile: &str, commands: &[&str]) -> Result<bool, ScheduleError> {
        let mut had_units = false;
        for command in commands {
            let [timer, service] = ["timer", "service"].map(|ending| unit(profile, command, ending));
            if self.folder.join(&timer).exists() {
                self.systemctl(&["disable", "--now", &timer])?;
            }
            for path in [timer, service].map(|name| self.folder.join(name)) {
                match std::fs::remove_file(&path) {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    removed => {
                        removed.map_err(|source| not_written(&path, source))?;
                        had_units = true;
                    }
                }
            }
        }
        Ok(had_units)
    }

    /// Tells whether a command is installed.
    pub(super) fn has(&self, profile: &str, command: &str) -> bool {
        self.folder.join(unit(profile, command, "timer")).exists()
    }

    /// When a command runs next, in systemd's words; `None` where it does not say.
    pub(super) fn next(&self, profile: &str, command: &str) -> Option<String> {
        let timer = unit(profile, command, "timer");
        let shown = self.systemctl(&["show", &timer, "--property=NextElapseUSecRealtime", "--value"]).ok()?;
        Some(shown.trim().to_owned()).filter(|next| !next.is_empty())
    }

    fn systemctl(&self, arguments: &[&str]) -> Result<String, ToolError> {
        let user: &[&str] = if self.is_user { &["--user"] } else { &[] };
        run("systemctl", &[user, arguments].concat(), "")
    }

    fn service(&self, job: &Job) -> String {
        let Job { profile, command, words, variables, .. } = job;
        let (head, name) = (head(profile), specifiers(profile));
        // A user's systemd knows nothing of the network.
        let network = if self.is_user { "" } else { "Wants=network-online.target\nAfter=network-online.target\n" };
        // Without it a service of the system has no home folder, where profile and cache lie.
        let user = if self.is_user { "" } else { "User=root\n" };
        let set = variables.iter().map(|(name, value)| format!("Environment={}\n", quoted(&format!("{name}={value}"))));
        let (set, line): (String, Vec<String>) = (set.collect(), words.iter().map(|word| argument(word)).collect());
        let line = line.join(" ");
        format!(
            "{head}[Unit]\nDescription=silt {command}, profile {name}\n{network}\n\
             [Service]\nType=oneshot\n{user}{set}ExecStart={line}\n\
             Nice=10\nCPUSchedulingPolicy=batch\nIOSchedulingClass=best-effort\nIOSchedulingPriority=7\n\
             TimeoutStopSec=5min\n"
        )
    }
}

fn not_written(path: &Path, source: std::io::Error) -> ScheduleError {
    ScheduleError::File { path: path.to_owned(), source }
}

fn timer(job: &Job) -> String {
    let Job { profile, command, when, .. } = job;
    let (head, name) = (head(profile), specifiers(profile));
    format!(
        "{head}[Unit]\nDescription=Time of silt {command}, profile {name}\n\n\
         [Timer]\nOnCalendar={when}\nPersistent=true\nRandomizedDelaySec={DELAY_MAX}\n\n\
         [Install]\nWantedBy=timers.target\n"
    )
}

fn head(profile: &str) -> String {
    format!("# Made by 'silt -P {profile} schedule install', and taken away by 'silt -P {profile} schedule remove'.\n")
}

fn unit(profile: &str, command: &str, ending: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    format!("silt-{}-{command}.{ending}", profile.replace(|c| !is_plain(c), "_"))
}

/// Asks systemd what it thinks of a time, if it can be asked.
fn check(job: &Job) -> Result<(), ScheduleError> {
    let Job { when, command, .. } = job;
    let wrong = |reason: String| ScheduleError::NotOfSystemd { when: when.clone(), command: command.clone(), reason };
    if when.is_empty() || when.contains(['\n', '\r', '\\']) {
        return Err(wrong("it is not one line".to_owned()));
    }
    match run("systemd-analyze", &["calendar", "--", when], "") {
        Err(error) if !error.is_absent() => Err(wrong(error.said().to_owned())),
        _ => Ok(()),
    }
}

/// A text whose percent signs stand for themselves.
fn specifiers(text: &str) -> String {
    text.replace('%', "%%")
}

/// A text in quotes, for an assignment.
fn quoted(text: &str) -> String {
    format!("\"{}\"", specifiers(text).replace('\\', "\\\\").replace('"', "\\\""))
}

/// A word of a line that is run.
fn argument(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./+@:,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { quoted(word).replace('$', "$$") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(program: &str, when: &str) -> Job {
        let words = [program, "--profile", "home", "backup"].map(str::to_owned).to_vec();
        let variables = vec![("XDG_CONFIG_HOME", "/home/me/my \"50%\" config".to_owned())];
        Job { profile: "home".into(), command: "backup".into(), when: when.into(), words, variables }
    }

    fn systemd(is_user: bool) -> Systemd {
        Systemd { folder: "/nowhere".into(), is_user }
    }

    #[test]
    fn a_service_runs_the_profile_in_the_background() {
        let system = systemd(false).service(&job("/usr/bin/silt", "daily"));
        for line in [
            "Type=oneshot",
            "ExecStart=/usr/bin/silt --profile home backup",
            "User=root",
            "Nice=10",
            "IOSchedulingClass=best-effort",
            "After=network-online.target",
            "Environment=\"XDG_CONFIG_HOME=/home/me/my \\\"50%%\\\" config\"",
        ] {
            assert!(system.lines().any(|other| other == line), "{line}: {system}");
        }
        let own = systemd(true).service(&job("/opt/my $tools/silt", "daily"));
        assert!(!own.contains("User=") && !own.contains("network"), "{own}");
        assert!(own.contains("ExecStart=\"/opt/my $$tools/silt\" --profile home backup"), "{own}");
    }

    #[test]
    fn a_timer_makes_up_for_what_was_missed() {
        let timer = timer(&job("/usr/bin/silt", "Mon..Fri 03:00"));
        for line in
            ["OnCalendar=Mon..Fri 03:00", "Persistent=true", "RandomizedDelaySec=15min", "WantedBy=timers.target"]
        {
            assert!(timer.lines().any(|other| other == line), "{line}: {timer}");
        }
    }

    #[test]
    fn systemd_understands_the_units() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = [
            ("silt-home-backup.service", systemd(false).service(&job("/bin/true", "daily"))),
            ("silt-home-backup.timer", timer(&job("/bin/true", "daily"))),
        ];
        let paths = files.map(|(name, text)| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            path.display().to_string()
        });
        match run("systemd-analyze", &["verify", "--man=no", &paths[0], &paths[1]], "") {
            Err(error) if error.is_absent() => {}
            verified => drop(verified.expect("units")),
        }
    }

    #[test]
    fn times_are_asked_of_systemd() {
        let is_wrong = |when: &str| matches!(check(&job("/bin/true", when)), Err(ScheduleError::NotOfSystemd { .. }));
        assert!(!is_wrong("daily") && !is_wrong("Mon..Fri 03:00"));
        assert!(is_wrong("daily\nExecStart=/bin/evil") && is_wrong(""));
        if run("systemd-analyze", &["--version"], "").is_ok() {
            assert!(is_wrong("every so often"));
        }
    }
}
