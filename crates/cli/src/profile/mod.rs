//! Profiles: options of commands that are kept in a file under a name, so that `silt -P NAME backup` is enough.
//!
//! A profile is below the environment, and that is below the command line. So its values become the defaults of the
//! options, and those are left out that a variable gives ([`rank`]). Its variables stand beside those of the process.

mod error;
mod file;
mod rank;
mod settings;

pub(crate) use error::ProfileError;
pub(crate) use rank::variable_before;
pub(crate) use settings::SCHEDULED;

use crate::args::{Cli, Command};
use crate::context::GlobalArgs;
use crate::environment;
use clap::{ArgMatches, Args, FromArgMatches};
use file::Loaded;
use rank::Given;
use settings::{Setting, Settings, WITH_SOURCES};
use std::path::{Path, PathBuf};
use toml::Table;

/// The profile that is used where none is named, if it is there.
const DEFAULT: &str = "default";
/// Id of the switch by which a command only says what it would do.
const REHEARSAL: &str = "dry_run";
/// Commands that know no profile, so that a broken one does not stop them.
const WITHOUT_PROFILE: [&str; 2] = ["generate", "version"];
/// Variables of this program that no option stands for.
const VARIABLES_WITHOUT_OPTION: [&str; 8] = [
    "SILT_PASSWORD",
    "SILT_FROM_PASSWORD",
    "SILT_TOKEN",
    "SILT_TOKEN_FILE",
    "SILT_APPEND_ONLY",
    "SILT_ALLOW_PLAIN_HTTP",
    "SILT_PROGRESS_FPS",
    "SILT_STATE_DIR",
];

/// Options that choose a profile.
#[derive(Args, Debug, Default)]
pub(crate) struct ProfileArgs {
    /// Profile whose values hold where neither the command line nor the environment gives one: a name, or a path with a
    /// slash [default: $SILT_PROFILE, or `default` if there is one]
    #[arg(short = 'P', long, global = true, value_name = "NAME", conflicts_with = "no_profile")]
    profile: Option<String>,
    /// Use no profile
    #[arg(long, global = true)]
    no_profile: bool,
}

/// Shell commands around a command of this program.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Hooks {
    /// They run first; where one fails nothing else is done.
    pub(crate) before: Vec<String>,
    /// They run when all was done, also if only in part.
    pub(crate) after: Vec<String>,
    /// They run when the command or a hook failed.
    pub(crate) failed: Vec<String>,
    /// They run last, however it went.
    pub(crate) finally: Vec<String>,
}

/// A profile that was read and whose every key is understood.
#[derive(Debug)]
pub(crate) struct Profile {
    /// Its name; of a path the name of the file, without the ending.
    pub(crate) name: String,
    /// The name or path that leads to it.
    pub(crate) reference: String,
    /// The file of the profile, then those it inherits from.
    pub(crate) files: Vec<PathBuf>,
    /// Everything in it, with what it inherits.
    pub(crate) table: Table,
    settings: Settings,
}

impl Profile {
    /// Reads the profile that the command line or the environment names, or else the one called `default`, if it is
    /// there.
    fn chosen(given: &ArgMatches, program: &clap::Command) -> Result<Option<Self>, ProfileError> {
        if given.get_flag("no_profile") {
            return Ok(None);
        }
        let named = given.get_one::<String>("profile").cloned();
        let named = named.or_else(|| environment::variable("SILT_PROFILE").map(|name| name.to_string_lossy().into()));
        match named {
            Some(name) => Self::read(name, program).map(Some),
            None if file::exists(DEFAULT) => Self::read(DEFAULT.to_owned(), program).map(Some),
            None => Ok(None),
        }
    }

    fn read(reference: String, program: &clap::Command) -> Result<Self, ProfileError> {
        let Loaded { files, table } = file::load(&reference)?;
        let settings = settings::read(&table, program).map_err(|error| error.in_file(files.first()))?;
        if settings.name_programs() {
            files.iter().try_for_each(|file| file::refuse_if_writable_by_others(file))?;
        }
        let is_path = reference.contains('/');
        let stem = Path::new(&reference).file_stem().filter(|_| is_path);
        let name = stem.map_or_else(|| reference.clone(), |stem| stem.to_string_lossy().into_owned());
        let absolute = std::path::absolute(&reference).ok().filter(|_| is_path);
        let reference = absolute.map_or(reference, |path| path.display().to_string());
        Ok(Self { name, reference, files, table, settings })
    }

    /// The error where one is needed and there is none.
    pub(crate) fn none_chosen() -> ProfileError {
        ProfileError::NoneChosen { looked_at: file::places(DEFAULT) }
    }

    /// Returns the hooks around a command.
    pub(crate) fn hooks(&self, command: &str) -> Hooks {
        self.settings.hooks.get(command).cloned().unwrap_or_default()
    }

    /// The commands that are to run by themselves, and when, in the order of their names.
    pub(crate) fn schedules(&self) -> impl Iterator<Item = (&str, &str)> {
        self.settings.schedules.iter().map(|(command, when)| (command.as_str(), when.as_str()))
    }

    /// Tells whether it gives a command an option of this name, or an own variable of this one.
    pub(crate) fn gives(&self, command: &str, options: &[&str], variable: &str) -> bool {
        let own = self.settings.own.get(command).into_iter().flatten();
        let mut names = self.settings.global.iter().chain(own).map(|setting| setting.option.as_str());
        names.any(|name| options.contains(&name)) || self.settings.environment.contains_key(variable)
    }

    /// The program with the values of the profile as defaults: once for each source, where the profile has several and
    /// the command line names none.
    fn applied(&self, program: &clap::Command, matches: &ArgMatches) -> Vec<Applied> {
        let Some((name, own)) = matches.subcommand() else {
            return vec![Applied { program: program.clone(), source: None }];
        };
        let given = Given::new(program, name, own);
        let with = |program: clap::Command, settings: &[Setting]| {
            let settings = given.left_of(settings);
            settings.iter().fold(program, |program, setting| setting.as_default(program, name))
        };
        let own = self.settings.own.get(name).map_or(&[][..], Vec::as_slice);
        let base = with(with(program.clone(), &self.settings.global_below(own)), own);
        let sources = self.settings.sources.as_slice();
        if name != WITH_SOURCES || sources.is_empty() || given.goes_before(rank::SOURCES) {
            return vec![Applied { program: base, source: None }];
        }
        let label = |source: &[Setting]| {
            let paths = source.iter().find(|setting| setting.option == "paths").map(|paths| paths.values.join(" "));
            paths.unwrap_or_default()
        };
        let applied = sources.iter().map(|source| (with(base.clone(), source), label(source)));
        applied.map(|(program, label)| Applied { program, source: Some(label) }).collect()
    }
}

/// The program with a profile's values.
struct Applied {
    program: clap::Command,
    source: Option<String>,
}

/// One command that is to run: a backup of several sources consists of several.
pub(crate) struct Part {
    pub(crate) command: Command,
    /// The source, as the profile names it.
    pub(crate) source: Option<String>,
}

/// Everything that the command line, the environment and the profile ask for.
pub(crate) struct Asked {
    pub(crate) profile: Option<Profile>,
    pub(crate) global: GlobalArgs,
    /// Name of the command.
    pub(crate) name: String,
    /// True if it is only to say what it would do.
    pub(crate) is_rehearsal: bool,
    /// One part at least.
    pub(crate) parts: Vec<Part>,
}

/// Errors of reading the command line with its profile.
pub(crate) enum NotUnderstood {
    /// The command line; or a question that is answered.
    Line(clap::Error),
    Profile(ProfileError),
}

impl From<clap::Error> for NotUnderstood {
    fn from(error: clap::Error) -> Self {
        Self::Line(error)
    }
}

impl From<ProfileError> for NotUnderstood {
    fn from(error: ProfileError) -> Self {
        Self::Profile(error)
    }
}

/// Reads the command line, and the profile that it or the environment chooses.
///
/// # Errors
/// One of them is not understood.
pub(crate) fn asked(program: clap::Command) -> Result<Asked, NotUnderstood> {
    // What is required may stand in the profile.
    let Ok(given) = without_requirements(program.clone()).try_get_matches() else {
        return parsed(program, None);
    };
    if given.subcommand_name().is_none_or(|name| WITHOUT_PROFILE.contains(&name)) {
        return parsed(program, None);
    }
    match Profile::chosen(&given, &program)? {
        Some(profile) => {
            environment::add(profile.settings.environment.clone());
            let applied = profile.applied(&program, &given);
            let mut asked: Option<Asked> = None;
            for Applied { program, source } in applied {
                let part = parsed(program, source)?;
                match &mut asked {
                    Some(asked) => asked.parts.extend(part.parts),
                    None => asked = Some(part),
                }
            }
            let asked = asked.map_or_else(|| parsed(program, None), Ok)?;
            Ok(Asked { profile: Some(profile), ..asked })
        }
        None => parsed(program, None),
    }
}

fn parsed(program: clap::Command, source: Option<String>) -> Result<Asked, NotUnderstood> {
    let matches = program.try_get_matches()?;
    let (name, own) = matches.subcommand().unwrap_or(("", &matches));
    let is_rehearsal = own.try_get_one::<bool>(REHEARSAL).is_ok_and(|is_set| is_set == Some(&true));
    let Cli { global, command } = Cli::from_arg_matches(&matches)?;
    Ok(Asked { profile: None, global, name: name.to_owned(), is_rehearsal, parts: vec![Part { command, source }] })
}

/// The program, none of whose commands requires an argument.
fn without_requirements(program: clap::Command) -> clap::Command {
    program.mut_subcommands(|own| without_requirements(own.mut_args(|argument| argument.required(false))))
}

#[cfg(test)]
mod tests;
