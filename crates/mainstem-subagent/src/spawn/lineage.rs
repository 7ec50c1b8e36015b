//! What a child and those above it were spawned as.

use std::{iter::successors, sync::Arc};

use mainstem_react::RunContext;

use crate::{catalog::CatalogEntry, member::Member};

/// What a child was declared as when it was spawned, and what those above it were: that stays in
/// effect for the child's whole life, whatever the catalogs of later runs say. In the context of
/// each of its turns.
#[derive(Debug)]
pub(crate) struct Lineage {
    pub(crate) entry: CatalogEntry,
    above: Option<Arc<Self>>,
}

impl Lineage {
    /// That of a new child of an agent with this one; the root has none.
    pub(crate) fn new(entry: CatalogEntry, above: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { entry, above })
    }

    /// The context's agent, then those above it up to the root's child; nobody for the root.
    pub(crate) fn of(cx: &RunContext) -> impl Iterator<Item = &Self> {
        let lineage = Member::of(cx).ok().and_then(|member| member.lineage.as_deref());
        successors(lineage, |child| child.above.as_deref())
    }
}
