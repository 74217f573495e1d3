//! `silt policy`: the rules of `silt forget` that the repository keeps for its series.

use super::forget::rules::{RuleArgs, Sentence};
use crate::context::Context;
use crate::error::{CliError, Done};
use crate::render::{Table, visible};
use crate::repository::open;
use clap::{Args, Subcommand};
use serde::Serialize;
use siltstone_engine::forget::policy::KeepPolicy;
use siltstone_engine::forget::{PolicyScope, RecordedPolicies, record_policy};

/// Keep rules of 'silt forget' in the repository, for each series or for all
#[derive(Args, Debug)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Subcommand, Debug)]
enum PolicyCommand {
    /// List the policies
    List,
    /// Set the policy of a series, or without --series that of all series that have none of their own
    Set(Box<SetArgs>),
    /// Remove the policy of a series, or without --series that of all series that have none of their own
    Remove(ScopeArgs),
}

#[derive(Args, Debug)]
struct SetArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    // Last, since its heading would cover what follows.
    #[command(flatten)]
    rules: RuleArgs,
}

#[derive(Args, Debug)]
struct ScopeArgs {
    /// Name of the series
    #[arg(long, value_name = "NAME")]
    series: Option<String>,
}

impl ScopeArgs {
    fn scope(&self) -> PolicyScope {
        self.series.clone().map_or(PolicyScope::Others, PolicyScope::Series)
    }
}

/// A policy: the series, null for all others, and its rules as the repository keeps them.
#[derive(Serialize)]
struct PolicyJson<'a> {
    series: Option<&'a str>,
    rules: Vec<String>,
}

/// `message_type` `summary`.
#[derive(Serialize)]
struct PolicyMessage<'a> {
    message_type: &'static str,
    action: &'static str,
    #[serde(flatten)]
    policy: PolicyJson<'a>,
}

pub(crate) fn run(arguments: &PolicyArgs, context: &Context) -> Result<Done, CliError> {
    match &arguments.command {
        PolicyCommand::List => list(context),
        PolicyCommand::Set(arguments) => {
            let (scope, policy) = (arguments.scope.scope(), arguments.rules.policy());
            let repository = open(context)?;
            record_policy(&repository, &scope, Some(&policy))?;
            let config = repository.config();
            if let PolicyScope::Series(name) = &scope
                && !config.series.values().any(|known| known == name)
            {
                context.output.warn(format_args!(
                    "warning: there is no series '{}' yet; 'silt snapshots --group-by series' shows the names",
                    visible(name.as_bytes())
                ));
            }
            told(context, "set", &scope, &policy, &format!("{}: {}", title(&scope), Sentence(&policy)))
        }
        PolicyCommand::Remove(arguments) => {
            let scope = arguments.scope();
            if !record_policy(&*open(context)?, &scope, None)? {
                return Err(CliError::NoPolicy { series: title(&scope) });
            }
            let words = format!("removed the policy of {}", title(&scope));
            told(context, "removed", &scope, &KeepPolicy::default(), &words)
        }
    }
}

fn list(context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    repository.require_reading("listing policies")?;
    let policies = RecordedPolicies::read(&repository.config())?;
    if context.output.json {
        let all: Vec<_> = policies.iter().map(|(scope, policy)| json(scope, policy)).collect();
        context.output.json(&all)?;
        return Ok(Done::Whole);
    }
    if policies.is_empty() {
        context.output.report("the repository keeps no policy; 'silt policy set' gives it one")?;
        return Ok(Done::Whole);
    }
    let mut table = Table::new(vec!["Series", "Policy"]);
    for (scope, policy) in policies.iter() {
        table.row(vec![vec![title(scope)], vec![Sentence(policy).to_string()]]);
    }
    context.output.line(table)?;
    Ok(Done::Whole)
}

fn told(
    context: &Context,
    action: &'static str,
    scope: &PolicyScope,
    policy: &KeepPolicy,
    words: &str,
) -> Result<Done, CliError> {
    let message = PolicyMessage { message_type: "summary", action, policy: json(scope, policy) };
    context.output.json_or_report(&message, words)?;
    Ok(Done::Whole)
}

fn json<'a>(scope: &'a PolicyScope, policy: &KeepPolicy) -> PolicyJson<'a> {
    let series = match scope {
        PolicyScope::Others => None,
        PolicyScope::Series(name) => Some(name.as_str()),
    };
    PolicyJson { series, rules: policy.to_string().lines().map(str::to_owned).collect() }
}

fn title(scope: &PolicyScope) -> String {
    match scope {
        PolicyScope::Others => "all other series".to_owned(),
        PolicyScope::Series(name) => format!("series '{}'", visible(name.as_bytes())),
    }
}
