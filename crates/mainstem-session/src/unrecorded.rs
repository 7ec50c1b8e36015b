//! A record that was never there.

use std::{future::ready, sync::Arc, task::Waker};

use futures_util::{FutureExt, future::BoxFuture};
use mainstem_event::{AgentEvent, Page, Position, Record};

/// Keeps nothing, and says why.
pub(crate) struct Unrecorded(pub(crate) Arc<str>);

impl Record for Unrecorded {
    fn position(&self) -> Position {
        Position::default()
    }

    fn append(&self, _: &AgentEvent) {}

    fn committed(&self) -> u64 {
        0
    }

    fn failure(&self) -> Option<Arc<str>> {
        Some(self.0.clone())
    }

    fn watch(&self, _: Waker) {}

    fn read(&self, _: u64, through: u64) -> BoxFuture<'static, Page> {
        ready(Page { events: Vec::new(), through }).boxed()
    }
}
