//! A session's agents: who can be spawned, who was.

use std::sync::Arc;

use mainstem_tool::RunContext;

use crate::{Catalog, CatalogEntry, SpawnError, roster::Roster};

/// How far agents may go.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The deepest agent; the root is at 0. Default 3.
    pub max_depth: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_depth: 3 }
    }
}

/// One session's agents. It belongs into the context of each of its runs, as an extension; the tools find it there.
#[derive(Debug)]
pub struct Fleet {
    catalog: Arc<Catalog>,
    limits: Limits,
    pub(crate) roster: Roster,
}

impl Fleet {
    /// A fleet without children.
    pub fn new(catalog: Arc<Catalog>, limits: Limits) -> Self {
        Self { catalog, limits, roster: Roster::default() }
    }

    /// The agents that can be spawned.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// How far agents may go.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The children of the session, in the order of their start.
    pub fn children(&self) -> Vec<crate::ChildSummary> {
        self.roster.list(None)
    }

    pub(crate) fn of(cx: &RunContext) -> Result<Arc<Self>, SpawnError> {
        cx.get().ok_or(SpawnError::NoFleet)
    }

    /// The agent to spawn, if the caller may spawn it.
    pub(crate) fn admit(&self, cx: &RunContext, id: &str) -> Result<&CatalogEntry, SpawnError> {
        let (depth, max_depth) = (cx.depth(), self.limits.max_depth);
        if depth >= max_depth {
            return Err(SpawnError::TooDeep { depth, max_depth });
        }
        self.catalog.spawnable(id)
    }
}
