//! The instructions.

use std::iter;

use serde::{Serialize, Serializer};

use super::part::Block;
use crate::caching::{Breakpoint, marked};

pub(super) struct System<'a> {
    pub(super) text: &'a str,
    pub(super) breakpoint: Option<Breakpoint>,
}

impl Serialize for System<'_> {
    /// Writes a text, or the form that can have a breakpoint.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.breakpoint.is_none() {
            return serializer.serialize_str(self.text);
        }
        marked(serializer, iter::once(Block::Text { text: self.text.into() }), self.breakpoint)
    }
}
