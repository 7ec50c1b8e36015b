//! What a child and its ancestors were spawned as.

use std::{iter::successors, sync::Arc};

use crate::catalog::CatalogEntry;

/// What a child was declared as when it was spawned, and its ancestors when they were. It is in
/// effect for the child's whole life, whatever the catalogs of later runs contain.
#[derive(Debug)]
pub(crate) struct Lineage {
    pub(crate) entry: CatalogEntry,
    above: Option<Arc<Self>>,
}

impl Lineage {
    /// Creates that of a child of the agent with the lineage `above`; the root has none.
    pub(crate) fn new(entry: CatalogEntry, above: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { entry, above })
    }

    /// Returns the child's own, then that of each ancestor up to the root's child.
    pub(crate) fn up(&self) -> impl Iterator<Item = &Self> {
        successors(Some(self), |child| child.above.as_deref())
    }
}
