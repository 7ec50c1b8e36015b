//! The laws of event streams that a recorded timeline shows.
//!
//! 1 sequence · 2 bracket · 3 cause · 4 blocks · 5 place · 6 condensation · 8 no silent loss · 12
//! roll-up · 14 taken back. The others (7 live, 9 independence, 10 drop, 11 containment, 13
//! determinism) are about time and about two runs; the property tests check them.

mod blocks;
mod cause;
mod invocation;
mod place;
mod sequence;
mod sums;
mod taken_back;

use std::fmt;

use mainstem_event::AgentEvent;

use self::invocation::{Invocation, invocations};

/// A broken law, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The number of the law: 1 sequence, 2 start and end, 3 cause, 4 blocks, 5 place, 6 the
    /// conversation, 8 no silent loss, 12 usage, 14 what is taken back.
    pub law: u8,
    /// The event that breaks it.
    pub seq: u64,
    /// A description.
    pub message: String,
}

impl Violation {
    fn new(law: u8, seq: u64, message: impl Into<String>) -> Self {
        Self { law, seq, message: message.into() }
    }
}

impl std::error::Error for Violation {}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "law {} is broken at event {}: {}", self.law, self.seq, self.message)
    }
}

/// Checks the events of whole runs of one session: everything that has begun must have ended.
///
/// In a timeline with a `GAP`, only the sequence is checked, because any event may be missing. Time
/// and space are nearly linear in the number of events.
///
/// ```
/// use mainstem_testing::{event::{EventKind, SessionLog}, laws};
///
/// let log = SessionLog::new("session-1".parse()?);
/// let mut reader = log.subscribe();
/// for number in 1..=2 {
///     log.emit(EventKind::Custom { name: "step".into(), value: number.into() });
/// }
/// let mut events: Vec<_> = std::iter::from_fn(|| reader.try_next()).collect();
/// assert!(laws(&events).is_ok());
/// events.reverse();
/// assert!(laws(&events).is_err());
/// # Ok::<(), mainstem_testing::message::IdError>(())
/// ```
///
/// # Errors
/// The first broken law, in the order 1 and 8, 2, 14, 4, 5, 3, 6, 12: each assumes those before it.
pub fn laws(events: &[AgentEvent]) -> Result<(), Violation> {
    crate::timelines::keep(events);
    let has_gap = sequence::check(events)?;
    if has_gap {
        return Ok(());
    }
    let all = invocations(events)?;
    taken_back::check(&all)?;
    blocks::check(&all)?;
    place::check(events, &all)?;
    let callers = cause::check(&all)?;
    sums::condensation(&all)?;
    sums::roll_up(&all, &callers)
}

#[cfg(test)]
mod tests;
