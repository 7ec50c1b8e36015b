//! What an invocation has cost so far.

use std::sync::{Arc, Mutex, PoisonError};

use mainstem_event::Rollup;
use mainstem_message::Usage;

/// Adds up the tokens of one invocation and the money for them, and on its end those of its children. Clones share one sum.
#[derive(Clone, Debug)]
pub struct Meter(Arc<Mutex<Rollup>>);

impl Meter {
    fn with<R>(&self, f: impl FnOnce(&mut Rollup) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a model call of the invocation itself.
    /// What it cost is `None` if that is unknown, see [`RunContext::cost`](crate::RunContext::cost).
    pub fn add_own(&self, usage: Usage, cost: Option<u64>) {
        self.with(|sum| sum.add_own(usage, cost));
    }

    /// Adds a child that ended, with all below it.
    pub fn add_child(&self, child: Rollup) {
        self.with(|sum| sum.add_child(&child));
    }

    /// The sum so far.
    pub fn read(&self) -> Rollup {
        self.with(|sum| *sum)
    }
}

impl Default for Meter {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Rollup::nothing())))
    }
}

#[cfg(test)]
mod tests;
