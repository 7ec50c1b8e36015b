//! Rules of permission: those of all files apply, so that a file can't allow what another refuses.

use mainstem::policy::{RuleSet, Rules};
use serde::Deserialize;

use super::table::{Layered, Location, Narrow};

/// The rules of files, the user's first.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "RuleSet")]
pub(crate) struct Permissions {
    own: Vec<RuleSet>,
    /// Those of the project's file, which can't lift a protection.
    project: Vec<RuleSet>,
}

impl Permissions {
    /// Returns the user's rules.
    pub(crate) fn own(&self) -> Rules {
        rules(&self.own)
    }

    /// Returns all sets, the user's first.
    pub(super) fn sets(&self) -> impl Iterator<Item = &RuleSet> {
        self.own.iter().chain(&self.project)
    }

    /// Returns `true` if the user's file has a rule about changes.
    pub(crate) fn has_changes(&self) -> bool {
        self.own.iter().any(|set| set.changes().is_some())
    }

    /// Removes the rule about changes of the user's file.
    pub(crate) fn clear_changes(&mut self) {
        self.own = std::mem::take(&mut self.own).into_iter().map(|set| set.with_changes(None)).collect();
    }

    /// Returns the rules of the project's file.
    pub(crate) fn project(&self) -> Rules {
        rules(&self.project)
    }
}

fn rules(sets: &[RuleSet]) -> Rules {
    sets.iter().fold(Rules::new(), |rules, set| rules.narrowed_by(&set.clone().into()))
}

impl From<RuleSet> for Permissions {
    fn from(rules: RuleSet) -> Self {
        Self { own: vec![rules], project: Vec::new() }
    }
}

impl Layered for Permissions {
    fn or(self, below: Self) -> Self {
        Self { own: [below.own, self.own].concat(), project: [below.project, self.project].concat() }
    }

    fn locate(&mut self, file: &Location<'_>) {
        let located = |rules: RuleSet| rules.with_origin(file.name);
        self.own = std::mem::take(&mut self.own).into_iter().map(located).collect();
    }
}

impl Narrow for Permissions {
    fn narrowed_by(self, _user: &Self) -> Self {
        Self { own: Vec::new(), project: self.own }
    }
}
