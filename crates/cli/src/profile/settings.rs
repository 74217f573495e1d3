//! From a profile's table to settings of options, every key and value of which the command line understands.

use super::error::WrongKey;
use super::rank::{SOURCES, rivals};
use super::{Hooks, VARIABLES_WITHOUT_OPTION};
use crate::environment;
use clap::builder::{OsStr, ValueRange};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command, Id};
use std::any::TypeId;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use toml::{Table, Value};

/// Options that choose the profile itself, or are questions.
const NOT_KEPT: [&str; 4] = ["help", "version", "profile", "no-profile"];
/// The command that may have several sources.
pub(super) const WITH_SOURCES: &str = "backup";
/// The commands that can run by themselves.
pub(crate) const SCHEDULED: [&str; 6] = ["backup", "check", "copy", "forget", "maintain", "prune"];
/// Keys beside options and commands.
const ENVIRONMENT: &str = "environment";
const HOOKS: &str = "hooks";
const SCHEDULE: &str = "schedule";
/// Likeness from which a name is suggested instead of an unknown one.
const LIKENESS_MIN: f64 = 0.7;

/// An option and its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Setting {
    /// The option's long name, or the name of the arguments without one.
    pub(super) option: String,
    id: Id,
    pub(super) values: Vec<String>,
    /// True for an option of all commands.
    is_global: bool,
}

impl Setting {
    /// The program, one of whose commands has this value unless another is given.
    pub(super) fn as_default(&self, program: Command, command: &str) -> Command {
        let values: Vec<OsStr> = self.values.iter().map(|value| OsStr::from(OsString::from(value))).collect();
        let with_default = |option: Arg| option.required(false).default_values(values);
        if self.is_global {
            program.mut_arg(self.id.clone(), with_default)
        } else {
            program.mut_subcommand(command, |own| own.mut_arg(self.id.clone(), with_default))
        }
    }

    /// Tells whether the value is a program that this one starts, or arguments of one.
    fn names_program(&self) -> bool {
        let ends = ["-command", "-program", "-args"];
        ends.iter().any(|end| self.option.ends_with(end)) || self.option == "notify"
    }
}

/// Everything that a profile sets.
#[derive(Default, Debug)]
pub(super) struct Settings {
    pub(super) global: Vec<Setting>,
    /// By command.
    pub(super) own: BTreeMap<String, Vec<Setting>>,
    /// Settings that each source of a backup adds.
    pub(super) sources: Vec<Vec<Setting>>,
    pub(super) hooks: BTreeMap<String, Hooks>,
    pub(super) schedules: BTreeMap<String, String>,
    pub(super) environment: BTreeMap<String, String>,
}

impl Settings {
    /// Settings for all commands that none of them gives in another way.
    pub(super) fn global_below(&self, own: &[Setting]) -> Vec<Setting> {
        let is_rival = |setting: &Setting| own.iter().any(|own| rivals(&own.option).contains(&&*setting.option));
        self.global.iter().filter(|setting| !is_rival(setting)).cloned().collect()
    }

    /// Tells whether some value is a program that this one starts, or may lead to another one.
    pub(super) fn name_programs(&self) -> bool {
        let mut all = self.global.iter().chain(self.own.values().flatten()).chain(self.sources.iter().flatten());
        !self.hooks.is_empty() || !self.environment.is_empty() || all.any(Setting::names_program)
    }
}

/// Reads a table.
///
/// # Errors
/// The first key or value that is not understood.
pub(super) fn read(table: &Table, program: &Command) -> Result<Settings, WrongKey> {
    let mut settings = Settings::default();
    let global = Section { program, command: None };
    for (key, value) in table {
        match value {
            value if key == ENVIRONMENT => settings.environment = variables(value)?,
            Value::Table(own) => read_command(key, own, program, &mut settings)?,
            value => settings.global.push(global.setting(key, value)?),
        }
    }
    try_values(program, WITH_SOURCES, "of all commands", &[&settings.global])?;
    for (command, own) in &settings.own {
        try_values(program, command, command, &[own])?;
    }
    for source in &settings.sources {
        try_values(program, WITH_SOURCES, "backup.sources", &[source])?;
    }
    Ok(settings)
}

fn read_command(name: &str, table: &Table, program: &Command, settings: &mut Settings) -> Result<(), WrongKey> {
    let commands = || program.get_subcommands().filter(|own| !own.is_hide_set());
    let Some(own) = commands().find(|own| own.get_name() == name) else {
        return Err(unknown("command", name, commands().map(Command::get_name).chain([ENVIRONMENT])));
    };
    let section = Section { program, command: Some(own) };
    let mut list = Vec::new();
    for (key, value) in table {
        match key.as_str() {
            HOOKS if SCHEDULED.contains(&name) => {
                settings.hooks.insert(name.to_owned(), hooks(name, value)?);
            }
            SCHEDULE if SCHEDULED.contains(&name) => {
                let Value::String(when) = value else { return Err(kind(&section.shown(key), "a text", value)) };
                settings.schedules.insert(name.to_owned(), when.clone());
            }
            SOURCES if name == WITH_SOURCES => settings.sources = sources(&section, value)?,
            option => list.push(section.setting(option, value)?),
        }
    }
    if !settings.sources.is_empty()
        && let Some(rival) =
            list.iter().find(|setting| name == WITH_SOURCES && rivals(SOURCES).contains(&&*setting.option))
    {
        return Err(WrongKey::Both { first: section.shown(&rival.option), second: section.shown(SOURCES) });
    }
    settings.own.insert(name.to_owned(), list);
    Ok(())
}

fn sources(section: &Section, value: &Value) -> Result<Vec<Vec<Setting>>, WrongKey> {
    let wrong = |value: &Value| kind(&section.shown(SOURCES), "tables", value);
    let Value::Array(sources) = value else { return Err(wrong(value)) };
    let source = |source: &Value| match source {
        Value::Table(table) => table.iter().map(|(key, value)| section.own_setting(key, value)).collect(),
        other => Err(wrong(other)),
    };
    sources.iter().map(source).collect()
}

/// Asks the command line what it thinks of values.
fn try_values(program: &Command, command: &str, section: &str, settings: &[&[Setting]]) -> Result<(), WrongKey> {
    let settings = settings.iter().copied().flatten();
    let program = settings.fold(program.clone(), |program, setting| setting.as_default(program, command));
    match program.try_get_matches_from(["silt", command]) {
        Err(error) if matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue) => {
            Err(WrongKey::Value { section: section.to_owned(), reason: one_line(&error) })
        }
        // What else is wrong with so short a line is not a value's fault.
        _ => Ok(()),
    }
}

/// The options of one command, or of all.
struct Section<'c> {
    program: &'c Command,
    command: Option<&'c Command>,
}

impl Section<'_> {
    fn setting(&self, key: &str, value: &Value) -> Result<Setting, WrongKey> {
        match self.command.and_then(|own| find(own, key)) {
            Some(argument) => self.read(argument, key, value, false),
            None => match find(self.program, key) {
                Some(argument) => self.read(argument, key, value, true),
                None => Err(self.unknown(key, true)),
            },
        }
    }

    /// An option of the command itself.
    fn own_setting(&self, key: &str, value: &Value) -> Result<Setting, WrongKey> {
        match self.command.and_then(|own| find(own, key)) {
            Some(argument) => self.read(argument, key, value, false),
            None => Err(self.unknown(key, false)),
        }
    }

    fn unknown(&self, key: &str, with_global: bool) -> WrongKey {
        let global = self.program.get_arguments().filter(|_| with_global);
        let own = self.command.into_iter().flat_map(Command::get_arguments);
        let options = own.chain(global).filter_map(name_of);
        match self.command {
            Some(own) => {
                let more = [HOOKS, SCHEDULE].into_iter().filter(|_| SCHEDULED.contains(&own.get_name()));
                unknown(&format!("option of 'silt {}'", own.get_name()), key, options.chain(more))
            }
            None => {
                let commands = self.program.get_subcommands().map(Command::get_name);
                unknown("option of all commands", key, options.chain(commands))
            }
        }
    }

    fn read(&self, argument: &Arg, key: &str, value: &Value, is_global: bool) -> Result<Setting, WrongKey> {
        let values = values(argument, &self.shown(key), value)?;
        Ok(Setting { option: key.to_owned(), id: argument.get_id().clone(), values, is_global })
    }

    fn shown(&self, key: &str) -> String {
        self.command.map_or_else(|| key.to_owned(), |own| format!("{}.{key}", own.get_name()))
    }
}

/// The texts that the command line would take for a value.
fn values(argument: &Arg, shown: &str, value: &Value) -> Result<Vec<String>, WrongKey> {
    match (argument.get_action(), value) {
        (ArgAction::SetTrue, Value::Boolean(is_set)) => return Ok(vec![is_set.to_string()]),
        (ArgAction::SetTrue, other) => return Err(kind(shown, "true or false", other)),
        (ArgAction::Count, Value::Integer(count)) if (0..=9).contains(count) => return Ok(vec![count.to_string()]),
        (ArgAction::Count, other) => return Err(kind(shown, "a small number", other)),
        _ => {}
    }
    let one = |value: &Value| match value {
        Value::String(text) if is_path(argument) => Ok(from_home(text)),
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Datetime(moment) => Ok(moment.to_string()),
        other => Err(kind(shown, "a text or a number", other)),
    };
    let takes_several = matches!(argument.get_action(), ArgAction::Append)
        || argument.get_num_args().is_some_and(|range: ValueRange| range.max_values() > 1);
    match value {
        Value::Array(values) if takes_several => values.iter().map(one).collect(),
        Value::Array(_) => Err(kind(shown, "one value", value)),
        value => Ok(vec![one(value)?]),
    }
}

fn is_path(argument: &Arg) -> bool {
    let kind = argument.get_value_parser().type_id();
    [TypeId::of::<PathBuf>(), TypeId::of::<OsString>()].iter().any(|path| kind == *path)
}

/// A path, with the home folder in the place of `~`, as the shell does it on the command line.
fn from_home(text: &str) -> String {
    let rest = text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match (rest, environment::variable("HOME")) {
        (Some(rest), Some(home)) => home.to_string_lossy().into_owned() + rest,
        _ => text.to_owned(),
    }
}

/// The first paragraph of what the command line says.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

/// The name that a profile has for an argument: its long name, or that of the arguments without one.
pub(super) fn name_of(argument: &Arg) -> Option<&str> {
    let name = match argument.get_long() {
        Some(long) => long,
        None if argument.is_positional() => argument.get_id().as_str(),
        None => return None,
    };
    (!NOT_KEPT.contains(&name)).then_some(name)
}

/// The argument that a profile calls so.
pub(super) fn find<'c>(command: &'c Command, name: &str) -> Option<&'c Arg> {
    command.get_arguments().find(|argument| name_of(argument) == Some(name))
}

fn hooks(command: &str, value: &Value) -> Result<Hooks, WrongKey> {
    let Value::Table(table) = value else { return Err(kind(&format!("{command}.{HOOKS}"), "a table", value)) };
    let mut hooks = Hooks::default();
    for (key, value) in table {
        let list = match key.as_str() {
            "before" => &mut hooks.before,
            "after" => &mut hooks.after,
            "failed" => &mut hooks.failed,
            "finally" => &mut hooks.finally,
            other => return Err(unknown("hook", other, ["before", "after", "failed", "finally"].into_iter())),
        };
        let values = if let Value::Array(values) = value { values.as_slice() } else { std::slice::from_ref(value) };
        for value in values {
            let Value::String(line) = value else {
                return Err(kind(&format!("{command}.{HOOKS}.{key}"), "a command or several", value));
            };
            list.push(line.clone());
        }
    }
    Ok(hooks)
}

fn variables(value: &Value) -> Result<BTreeMap<String, String>, WrongKey> {
    let Value::Table(table) = value else { return Err(kind(ENVIRONMENT, "a table", value)) };
    let mut variables = BTreeMap::new();
    for (name, value) in table {
        let Value::String(text) = value else { return Err(kind(&format!("{ENVIRONMENT}.{name}"), "a text", value)) };
        let wrong = |reason: &str| Err(WrongKey::Variable { name: name.clone(), reason: reason.to_owned() });
        if name.is_empty() || name.contains(['=', '\0']) || text.contains('\0') {
            return wrong("this can be no variable");
        }
        if name.starts_with("SILT_") && !VARIABLES_WITHOUT_OPTION.contains(&name.as_str()) {
            return wrong("give the option instead ('silt --help' tells which)");
        }
        variables.insert(name.clone(), text.clone());
    }
    Ok(variables)
}

fn kind(key: &str, wanted: &'static str, found: &Value) -> WrongKey {
    let found = match found {
        Value::String(_) => "a text",
        Value::Integer(_) | Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a time",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    };
    WrongKey::Kind { key: key.to_owned(), wanted, found }
}

fn unknown<'k>(what: &str, key: &str, known: impl Iterator<Item = &'k str>) -> WrongKey {
    let likeness = |name: &str| strsim::jaro_winkler(key, name);
    let near = known.max_by(|a, b| likeness(a).total_cmp(&likeness(b))).filter(|name| likeness(name) > LIKENESS_MIN);
    WrongKey::Unknown { what: what.to_owned(), key: key.to_owned(), near: near.map(str::to_owned) }
}
