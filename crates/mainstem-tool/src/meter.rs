//! What an invocation has cost so far.

use std::sync::{Arc, Mutex, PoisonError};

use mainstem_event::Rollup;
use mainstem_message::Usage;

/// Adds up the tokens of one invocation, and on its end those of its children. Clones share one sum.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<Mutex<Rollup>>);

impl Meter {
    fn with<R>(&self, f: impl FnOnce(&mut Rollup) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a model call of the invocation itself.
    pub fn add_own(&self, usage: Usage) {
        self.with(|sum| {
            sum.own += usage;
            sum.inclusive += usage;
        });
    }

    /// Adds a child that ended, with all below it.
    pub fn add_child(&self, child: Rollup) {
        self.with(|sum| sum.inclusive += child.inclusive);
    }

    /// The sum so far.
    pub fn read(&self) -> Rollup {
        self.with(|sum| *sum)
    }
}

#[cfg(test)]
mod tests;
