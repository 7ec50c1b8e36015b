//! The usage and cost of an invocation.

use std::sync::{Arc, Mutex, PoisonError};

use mainstem_event::Rollup;
use mainstem_message::Usage;

/// Adds up the tokens and the cost of one invocation and, when they end, of its children. Clones
/// share one sum.
#[derive(Clone, Debug)]
pub struct Meter(Arc<Mutex<Rollup>>);

impl Meter {
    fn with<R>(&self, f: impl FnOnce(&mut Rollup) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a model call of the invocation itself. `cost` is `None` if it is unknown, see
    /// [`RunContext::cost`](crate::RunContext::cost).
    pub fn add_own(&self, usage: Usage, cost: Option<u64>) {
        self.with(|sum| sum.add_own(usage, cost));
    }

    /// Ends the invocation: calls `emit` with the sum, which must record the end, adds the sum to
    /// that of the invocation `above`, and returns it. Children are added before the sum is read or
    /// after the end is recorded, and the invocation above ends before the record or after the
    /// addition. So usage adds up, whichever threads invocations end on.
    ///
    /// `emit` must not use either meter: that would deadlock.
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

    /// Returns the sum so far.
    pub fn read(&self) -> Rollup {
        self.with(|sum| *sum)
    }
}

impl From<Rollup> for Meter {
    /// Creates a meter that starts with this usage.
    fn from(used: Rollup) -> Self {
        Self(Arc::new(Mutex::new(used)))
    }
}

impl Default for Meter {
    fn default() -> Self {
        Self::from(Rollup::nothing())
    }
}

#[cfg(test)]
mod tests;
