//! Lines in the user's crontab, between two lines that say whose they are.

use super::ScheduleError;
use super::job::Job;
use super::tool::{ToolError, run};
use std::borrow::Cow;

/// Messages of `crontab` for a user who has none; the second is busybox's.
const NONE: [&str; 2] = ["no crontab for", "No such file or directory"];
/// Names of days, from Sunday on as cron counts them.
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Installs jobs in the place of those that the profile had.
pub(super) fn install(profile: &str, jobs: &[Job]) -> Result<(), ScheduleError> {
    let lines = jobs.iter().map(line).collect::<Result<Vec<_>, _>>()?;
    let [begin, end] = marks(profile);
    let (others, _) = without(&read()?, profile);
    let text = format!("{others}{begin}\n{}\n{end}\n", lines.join("\n"));
    Ok(run("crontab", &["-"], &text).map(drop)?)
}

/// Removes what the profile has. Returns whether there was anything.
pub(super) fn remove(profile: &str) -> Result<bool, ScheduleError> {
    let (others, own) = without(&read()?, profile);
    match (own.is_empty(), others.is_empty()) {
        (true, _) => {}
        (false, true) => drop(run("crontab", &["-r"], "")?),
        (false, false) => drop(run("crontab", &["-"], &others)?),
    }
    Ok(!own.is_empty())
}

/// The lines that the profile has; none where there is no cron.
pub(super) fn lines(profile: &str) -> Result<Vec<String>, ScheduleError> {
    match read() {
        Err(error) if error.is_absent() => Ok(Vec::new()),
        crontab => Ok(without(&crontab?, profile).1),
    }
}

/// The crontab; empty if there is none. Any other failure ends the command, for what is not read would be lost.
fn read() -> Result<String, ToolError> {
    match run("crontab", &["-l"], "") {
        Err(error) if NONE.iter().any(|words| error.said().contains(words)) => Ok(String::new()),
        read => read,
    }
}

fn marks(profile: &str) -> [String; 2] {
    ["begin", "end"].map(|edge| format!("# silt schedule of the profile {profile}: {edge}"))
}

/// The crontab without a profile's lines, and these.
fn without(crontab: &str, profile: &str) -> (String, Vec<String>) {
    let [begin, end] = marks(profile);
    let (mut others, mut own, mut is_own) = (String::new(), Vec::new(), false);
    let has_end = |at: usize| crontab.lines().skip(at).any(|line| line == end);
    for (at, line) in crontab.lines().enumerate() {
        if line == begin && has_end(at) {
            is_own = true;
        } else if is_own && line == end {
            is_own = false;
        } else if is_own {
            own.push(line.to_owned());
        } else {
            others.push_str(line);
            others.push('\n');
        }
    }
    (others, own)
}

/// The line of a job. cron takes a bare percent sign for the end of the line.
fn line(job: &Job) -> Result<String, ScheduleError> {
    let not_of_cron = || ScheduleError::NotOfCron { when: job.when.clone(), command: job.command.clone() };
    let fields = fields(&job.when).ok_or_else(not_of_cron)?;
    let quoted = |word: &str| shlex::try_quote(word).map(Cow::into_owned).map_err(|_| not_of_cron());
    let set = job.variables.iter().map(|(name, value)| Ok(format!("{name}={}", quoted(value)?)));
    let words = job.words.iter().map(|word| quoted(word));
    let run = ["nice -n 10".to_owned()].into_iter().map(Ok);
    let words: Vec<String> = set.chain(run).chain(words).collect::<Result<_, ScheduleError>>()?;
    Ok(format!("{fields} {} --quiet", words.join(" ").replace('%', "\\%")))
}

/// The five fields of a time in the words of systemd that both know, or as cron has them.
fn fields(when: &str) -> Option<String> {
    let named = match when {
        "hourly" => "0 * * * *",
        "daily" => "0 0 * * *",
        "weekly" => "0 0 * * 1",
        "monthly" => "0 0 1 * *",
        "quarterly" => "0 0 1 1,4,7,10 *",
        "semiannually" => "0 0 1 1,7 *",
        "yearly" | "annually" => "0 0 1 1 *",
        _ => "",
    };
    if !named.is_empty() {
        return Some(named.to_owned());
    }
    let words: Vec<&str> = when.split_whitespace().collect();
    match words.as_slice() {
        [time] => of_clock(time, "*"),
        [days, time] => of_clock(time, &of_days(days)?),
        [_, _, _, _, _] => {
            let is_field = |c: char| c.is_ascii_alphanumeric() || "*/,-".contains(c);
            words.iter().all(|word| word.chars().all(is_field)).then(|| words.join(" "))
        }
        _ => None,
    }
}

/// `03:00` on these days.
fn of_clock(time: &str, days: &str) -> Option<String> {
    let (hour, minute) = time.split_once(':')?;
    let number = |text: &str, below: u32| text.parse::<u32>().ok().filter(|number| *number < below);
    Some(format!("{} {} * * {days}", number(minute, 60)?, number(hour, 24)?))
}

/// `Mon,Wed` or `Mon..Fri`.
fn of_days(days: &str) -> Option<String> {
    let day = |text: &str| {
        let text = text.to_ascii_lowercase();
        DAYS.iter().position(|day| text.starts_with(day)).map(|number| number.to_string())
    };
    let part = |part: &str| match part.split_once("..") {
        // cron takes 7 for Sunday, too, where a week ends with it.
        Some((first, last)) => Some(format!("{}-{}", day(first)?, day(last)?.replace('0', "7"))),
        None => day(part),
    };
    let parts = days.split(',').map(part).collect::<Option<Vec<_>>>()?;
    Some(parts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_the_fields_of_cron() {
        let cases = [
            ("daily", Some("0 0 * * *")),
            ("03:30", Some("30 3 * * *")),
            ("Mon..Fri 22:05", Some("5 22 * * 1-5")),
            ("Sat..Sun 1:00", Some("0 1 * * 6-7")),
            ("Sun,Wed 00:00", Some("0 0 * * 0,3")),
            ("*/15 8-17 * * 1-5", Some("*/15 8-17 * * 1-5")),
            ("25:00", None),
            ("03:00:00", None),
            ("*-*-1 03:00", None),
            ("0 0 * * *; rm", None),
            ("0 0 * * $x", None),
            ("", None),
        ];
        for (when, expected) in cases {
            assert_eq!(fields(when).as_deref(), expected, "{when}");
        }
    }

    #[test]
    fn only_the_lines_of_the_profile_are_taken_out() {
        let [begin, end] = marks("home");
        let crontab = format!("MAILTO=me\n0 1 * * * mine\n{begin}\n0 0 * * * silt\n{end}\n# last\n");
        let (others, own) = without(&crontab, "home");
        assert_eq!((others.as_str(), own.len()), ("MAILTO=me\n0 1 * * * mine\n# last\n", 1));
        assert_eq!(without(&crontab, "other"), (crontab.clone(), Vec::new()));
        let cut = format!("{begin}\n0 1 * * * mine\n");
        assert_eq!(without(&cut, "home"), (cut.clone(), Vec::new()), "without an end nobody knows whose they are");
    }

    #[test]
    fn lines_are_quoted_for_shell_and_cron() {
        let words = ["/opt/my 100%/silt", "--profile", "home", "backup"].map(str::to_owned).to_vec();
        let variables = vec![("SILT_STATE_DIR", "/a b".to_owned())];
        let job = Job { profile: "home".into(), command: "backup".into(), when: "daily".into(), words, variables };
        let expected = "0 0 * * * SILT_STATE_DIR='/a b' nice -n 10 '/opt/my 100\\%/silt' --profile home backup --quiet";
        assert_eq!(line(&job).expect("a line"), expected);
    }
}
