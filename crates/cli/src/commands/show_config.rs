//! `silt show-config`: what the profile says, with what it inherits, and what goes before it.

use crate::context::Context;
use crate::error::{CliError, Done};
use crate::profile::{Profile, variable_before};
use crate::render::visible;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use toml::{Table, Value};

/// Stands in for the values of variables, which may be secrets.
const HIDDEN: &str = "***";
const ENVIRONMENT: &str = "environment";

/// Show what the profile says, with what it inherits and what goes before it
#[derive(Args, Debug)]
pub(crate) struct ShowConfigArgs {}

#[derive(Serialize)]
struct ConfigJson<'a> {
    profile: &'a str,
    files: &'a [PathBuf],
    settings: &'a Table,
}

pub(crate) fn run(_: &ShowConfigArgs, profile: Option<&Profile>, context: &Context) -> Result<Done, CliError> {
    let profile = profile.ok_or_else(Profile::none_chosen)?;
    let table = without_secrets(profile.table.clone());
    let json = ConfigJson { profile: &profile.name, files: &profile.files, settings: &table };
    context.output.json_or_line(&json, text(profile, &table))?;
    Ok(Done::Whole)
}

fn without_secrets(mut table: Table) -> Table {
    if let Some(Value::Table(variables)) = table.get_mut(ENVIRONMENT) {
        variables.iter_mut().for_each(|(_, value)| *value = Value::String(HIDDEN.to_owned()));
    }
    table
}

/// The settings as TOML, with comments that say where they come from and which do not hold.
fn text(profile: &Profile, table: &Table) -> String {
    let mut lines = Vec::new();
    for (verb, file) in ["profile", "inherits"].into_iter().chain(std::iter::repeat("inherits")).zip(&profile.files) {
        lines.push(format!("# {verb} {}", visible(file.display().to_string().as_bytes())));
    }
    section("", table, &mut lines);
    lines.join("\n")
}

fn section(path: &str, table: &Table, lines: &mut Vec<String>) {
    let inner = |key: &str| if path.is_empty() { quoted(key) } else { format!("{path}.{}", quoted(key)) };
    let is_section = |value: &Value| match value {
        Value::Table(_) => true,
        Value::Array(values) => values.first().is_some_and(Value::is_table),
        _ => false,
    };
    for (key, value) in table.iter().filter(|(_, value)| !is_section(value)) {
        lines.push(format!("{} = {value}{}", quoted(key), before(path, key)));
    }
    for (key, value) in table {
        match value {
            Value::Table(table) => {
                lines.push(format!("\n[{}]", inner(key)));
                section(&inner(key), table, lines);
            }
            Value::Array(values) if is_section(value) => {
                for table in values.iter().filter_map(Value::as_table) {
                    lines.push(format!("\n[[{}]]", inner(key)));
                    section(&inner(key), table, lines);
                }
            }
            _ => {}
        }
    }
}

/// Says which variable goes before a value.
fn before(path: &str, key: &str) -> String {
    let of_variables = || std::env::var_os(key).is_some_and(|value| !value.is_empty()).then_some(key);
    let variable = if path == ENVIRONMENT { of_variables() } else { variable_before(key) };
    variable.map_or_else(String::new, |variable| format!("  # {variable} of the environment goes before it"))
}

/// A key as TOML wants it.
fn quoted(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if key.chars().all(is_bare) { key.to_owned() } else { Value::String(key.to_owned()).to_string() }
}
