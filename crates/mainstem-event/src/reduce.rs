//! What events come to: pure functions from events to states, which match every kind.

pub mod diagnostics;
pub mod event;
pub mod fleet;
pub mod fold;
