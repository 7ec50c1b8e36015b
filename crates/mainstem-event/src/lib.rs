#![doc = include_str!("../README.md")]
//!
//! One type is emitted, [`AgentEvent`]: an envelope around an [`EventKind`]. Producers hold an
//! [`EventSink`]; the [`SessionLog`] numbers and stamps; readers hold a [`Cursor`]. All other
//! values are pure functions of the events: the conversation ([`fold`]), the state of the fleet
//! ([`FleetState`]), how well they arrived ([`Diagnostics`]), the coarser v1 [`Event`], and the
//! views of [`EventStreamExt`], which work on any stream of events, live or from a file.
//!
//! The crate knows no runtime, no agent and no model.

#[cfg(test)]
mod fixture;
mod log;
mod reduce;
pub mod view;
mod vocabulary;

pub use log::{
    Clock, Cursor, EventSink, Ids, LogOptions, Page, Position, RandomIds, Record, SessionLog, Settle,
    SystemClock,
};
#[doc(inline)]
pub use reduce::{
    diagnostics::{self, Diagnostics},
    event::{self, Event, EventType, StreamOptions},
    fleet::{self, AgentState, FleetState},
    fold,
};
#[doc(inline)]
pub use view::{EventFilter, EventStreamExt};
pub use vocabulary::{
    AgentEvent, Background, CallPurpose, CancelReason, ChildStatus, ChildSummary, ConfirmResult, Decision,
    Discarded, EventData, EventKind, EventSource, MAX_LINE_BYTES, OnLost, Origin, Outcome, Rollup, RunBudget,
    RunSettings, SendMode, TaskStatus, Timestamp, TimestampError, markdown_table,
};

// The layers in whose types this one speaks, so that it can be used alone.
pub use mainstem_message as message;
