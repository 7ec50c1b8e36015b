//! Specs by id.

use std::collections::{BTreeMap, btree_map::Entry};

use crate::{AgentSpec, FindingKind, Origin, SpecError};

/// Specs ordered by id, one an id.
///
/// Of two with the same id, one in code wins over a file, and a file over a built-in one; of equal
/// ones the later wins. Each replacement is a warning.
///
/// ```
/// use mainstem_spec::{AgentSpec, Origin, SpecSet};
///
/// let mut specs = SpecSet::new();
/// specs.insert(AgentSpec::new("writer", "Writes").with_origin(Origin::BuiltIn));
/// let warning = specs.insert(AgentSpec::new("writer", "Writes verse")).unwrap();
/// assert_eq!(specs.get("writer").unwrap().description, "Writes verse");
/// assert_eq!(
///     warning.to_string(),
///     "warning: agent \"writer\" is declared twice: \
///      the one built in code replaces the built-in one",
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SpecSet {
    specs: BTreeMap<String, AgentSpec>,
}

impl SpecSet {
    /// A set without specs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the spec with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&AgentSpec> {
        self.specs.get(id)
    }

    /// Returns the specs, ordered by id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &AgentSpec> {
        self.specs.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut AgentSpec> {
        self.specs.values_mut()
    }

    /// Returns how many specs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.specs.len()
    }

    /// Returns `true` if there are no specs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// Adds a spec, unless one that wins over it has the same id. The spec isn't validated.
    ///
    /// Returns a warning that names both origins if the id was taken.
    pub fn insert(&mut self, spec: AgentSpec) -> Option<SpecError> {
        let mut present = match self.specs.entry(spec.id.clone()) {
            Entry::Vacant(free) => {
                free.insert(spec);
                return None;
            }
            Entry::Occupied(present) => present,
        };
        let replaces = spec.origin.precedence() >= present.get().origin.precedence();
        let loser = if replaces { present.insert(spec) } else { spec };
        Some(clash(&format!("agent {:?}", loser.id), &present.get().origin, &loser.origin))
    }

    /// Removes a spec.
    pub fn remove(&mut self, id: &str) -> Option<AgentSpec> {
        self.specs.remove(id)
    }

    /// Returns what has changed from an earlier set to this one.
    ///
    /// ```
    /// use mainstem_spec::{AgentSpec, SpecSet};
    ///
    /// let (mut earlier, mut later) = (SpecSet::new(), SpecSet::new());
    /// earlier.insert(AgentSpec::new("writer", "Writes"));
    /// later.insert(AgentSpec::new("writer", "Writes verse"));
    /// assert_eq!(later.changes_since(&earlier).changed, ["writer"]);
    /// ```
    #[must_use]
    pub fn changes_since(&self, earlier: &Self) -> Changes {
        let ids = |set: &Self, wanted: &dyn Fn(&AgentSpec) -> bool| {
            set.iter().filter(|spec| wanted(spec)).map(|spec| spec.id.clone()).collect()
        };
        Changes {
            added: ids(self, &|spec| earlier.get(&spec.id).is_none()),
            changed: ids(self, &|spec| earlier.get(&spec.id).is_some_and(|before| before != spec)),
            removed: ids(earlier, &|spec| self.get(&spec.id).is_none()),
        }
    }

    /// Adds every spec of another set, as [`insert`](Self::insert) does; returns the warnings.
    pub fn merge(&mut self, other: Self) -> Vec<SpecError> {
        other.specs.into_values().filter_map(|spec| self.insert(spec)).collect()
    }
}

/// How one set differs from an earlier one, by id and in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// Ids that are new.
    pub added: Vec<String>,
    /// Ids whose spec has changed.
    pub changed: Vec<String>,
    /// Ids that were removed.
    pub removed: Vec<String>,
}

impl Changes {
    /// Returns `true` if both sets are the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// Returns a warning about the file that was replaced, if it was one.
pub(crate) fn clash(what: &str, winner: &Origin, loser: &Origin) -> SpecError {
    let replaced = match winner == loser {
        true => "the later one replaces the earlier one".to_owned(),
        false => format!("{winner} replaces {loser}"),
    };
    let warning =
        SpecError::warning(format!("{what} is declared twice: {replaced}")).of_kind(FindingKind::Duplicate);
    match loser {
        Origin::File(path) => warning.in_file(path),
        Origin::BuiltIn | Origin::Program => warning,
    }
}

#[cfg(test)]
mod tests;
