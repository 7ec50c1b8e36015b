//! What an invocation has cost so far.

use std::sync::{Arc, Mutex, PoisonError};

use mainstem_event::Rollup;
use mainstem_message::Usage;

/// Adds up the tokens of one invocation and the money for them, and on its end those of its
/// children. Clones share one sum.
#[derive(Clone, Debug)]
pub struct Meter(Arc<Mutex<Rollup>>);

impl Meter {
    fn with<R>(&self, f: impl FnOnce(&mut Rollup) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a model call of the invocation itself. What it cost is `None` if that is unknown, see
    /// [`RunContext::cost`](crate::RunContext::cost).
    pub fn add_own(&self, usage: Usage, cost: Option<u64>) {
        self.with(|sum| sum.add_own(usage, cost));
    }

    /// Ends the invocation: calls `emit` with the sum, which must record the end, adds the sum to
    /// that of the invocation `above`, and returns it. No child is added between the reading of the
    /// sum and the record, and the invocation above does not end between the record and the
    /// addition. So usage adds up, whichever threads invocations end on.
    ///
    /// `emit` must not use either meter: that would block for ever.
    pub fn end(&self, above: Option<&Self>, emit: impl FnOnce(Rollup)) -> Rollup {
        self.with(|sum| {
            let sum = *sum;
            match above {
                Some(above) => above.with(|above| {
                    emit(sum);
                    above.add_child(&sum);
                }),
                None => emit(sum),
            }
            sum
        })
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
