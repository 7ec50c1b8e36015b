//! What a person always allows in a project, and what a run asks about.

use anyhow::{Context, ensure};
use clap::ValueEnum;
use mainstem::{
    api::RunOptions,
    policy::{Effect, Pattern, Rule, RuleSet, Rules},
};

use super::{always::covers, question::Question};
use crate::{config::Config, terminal::Terminal, trusted::Store};

/// How calls are approved that may change something: of tools that are not read-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// Ask you, unless you have allowed such calls always.
    Ask,
    /// They run, except those that a rule of `[permissions]`, or an agent elsewhere, asks about.
    Auto,
    /// They are refused.
    Never,
}

/// The patterns that are always allowed: those of the project, and those of this command.
#[derive(Debug, Default)]
pub(crate) struct Allowed {
    patterns: Vec<Pattern>,
    /// The project's folder, or the server's address.
    project: String,
}

/// How the calls of a command's runs are approved.
#[derive(Debug)]
pub(crate) struct Approval {
    approve: Approve,
    /// Whether neither a flag nor a rule has chosen it.
    is_by_default: bool,
    has_person: bool,
    allowed: Allowed,
    warning: Option<String>,
}

impl Approval {
    /// Returns what the flag says; without it, a person is asked, unless the user's file has a rule
    /// about changes.
    ///
    /// # Errors
    /// The flag is `ask`, and stdin or stderr is not a terminal.
    pub(crate) fn new(
        flag: Option<Approve>,
        config: Option<&mut Config>,
        project: String,
        has_person: bool,
    ) -> anyhow::Result<Self> {
        ensure!(
            has_person || flag != Some(Approve::Ask),
            "--approve ask: there is no person to ask, because stdin or stderr is not a terminal"
        );
        let permissions = config.map(|config| &mut config.settings.permissions);
        let has_rule = permissions.as_ref().is_some_and(|permissions| permissions.has_changes());
        if flag == Some(Approve::Auto) {
            permissions.into_iter().for_each(|permissions| permissions.clear_changes());
        }
        let by_default = if has_person && !has_rule { Approve::Ask } else { Approve::Auto };
        let approve = flag.unwrap_or(by_default);
        let store = Store::of_user().filter(|_| approve == Approve::Ask);
        let patterns = store.map_or_else(|| Ok(Vec::new()), |store| store.allowed(&project));
        let warning =
            patterns.as_ref().err().map(|error| format!("warning: nothing is always allowed: {error:#}"));
        let allowed = Allowed { patterns: patterns.unwrap_or_default(), project };
        let is_by_default = flag.is_none() && !has_rule;
        Ok(Self { approve, is_by_default, has_person, allowed, warning })
    }

    /// Warns a person at a terminal of changes about which no question can be put to them.
    pub(crate) fn with_warning_of_changes(mut self, terminal: Terminal) -> Self {
        let is_near = terminal.stdin || terminal.stdout || terminal.stderr;
        if is_near && self.is_by_default && !self.has_person {
            let warning = "warning: you are not asked before a tool changes something, because stdin has the prompt, or stdin or stderr is not your \
                           terminal; `--approve never` refuses such calls, `--approve auto` accepts them";
            self.warning = Some(warning.to_owned());
        }
        self
    }

    /// Adds what a run asks about to its options.
    pub(crate) fn options(&self, options: RunOptions) -> RunOptions {
        let set = RuleSet::new(Effect::Allow);
        let permissions = match self.approve {
            Approve::Auto => Rules::new(),
            Approve::Never => set.with_changes(Effect::Deny).into(),
            Approve::Ask => self.allowed.rules(set.with_changes(Effect::Ask)),
        };
        let is_attended = self.has_person && self.approve != Approve::Never;
        RunOptions { permissions, approval: Some(is_attended), ..options }
    }

    /// Returns why what is always allowed can't be read, if so.
    pub(crate) fn warning(&self) -> Option<String> {
        self.warning.clone()
    }

    /// Returns what is always allowed.
    pub(crate) fn into_allowed(self) -> Allowed {
        self.allowed
    }
}

impl Allowed {
    fn rules(&self, set: RuleSet) -> Rules {
        let rules = self.patterns.iter().map(|pattern| Rule::of(Effect::Allow, pattern.clone()));
        rules.map(|rule| rule.with_origin("an answer")).fold(set, RuleSet::with_rule).into()
    }

    /// Returns `true` if all that is asked is allowed.
    pub(super) fn covers(&self, question: &Question) -> bool {
        !question.has_rule()
            && question.calls.iter().all(|call| self.patterns.iter().any(|pattern| covers(pattern, call)))
    }

    /// Allows patterns from now on, and records them.
    ///
    /// # Errors
    /// They can't be recorded.
    pub(super) fn add(&mut self, patterns: Vec<Pattern>) -> anyhow::Result<()> {
        self.patterns.extend(patterns.iter().cloned());
        let store = Store::of_user().context("there is no directory for the user's state")?;
        store.allow(&self.project, patterns)
    }
}
