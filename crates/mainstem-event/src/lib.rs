#![doc = include_str!("../README.md")]
//!
//! One type is emitted, [`AgentEvent`]: an envelope around an [`EventKind`]. Producers hold an
//! [`EventSink`]; the [`SessionLog`] numbers and stamps; readers hold a [`Cursor`]. All other
//! values are pure functions of the events: the conversation ([`fold`]), the state of the fleet
//! ([`FleetState`]), how well they arrived ([`Diagnostics`]), the coarser v1 [`Event`], and the
//! views of [`EventStreamExt`], which work on any stream of events, live or from a file.
//!
//! The crate knows no runtime, no agent and no model.

mod agent_event;
mod cancel;
mod child;
mod clock;
mod cursor;
mod decision;
pub mod diagnostics;
mod display;
pub mod event;
#[cfg(test)]
mod fixture;
pub mod fleet;
pub mod fold;
mod kind;
mod record;
mod session_log;
mod sink;
mod source;
mod sync;
pub mod view;

pub use agent_event::{AgentEvent, EventData, MAX_LINE_BYTES, markdown_table};
pub use cancel::CancelReason;
pub use child::{ChildStatus, ChildSummary};
pub use clock::{Clock, Ids, RandomIds, SystemClock, Timestamp};
pub use cursor::Cursor;
pub use decision::Decision;
#[doc(inline)]
pub use diagnostics::Diagnostics;
#[doc(inline)]
pub use event::{Event, EventType, StreamOptions};
#[doc(inline)]
pub use fleet::{AgentState, FleetState};
pub use kind::{
    Background, ConfirmResult, EventKind, Outcome, Rollup, RunBudget, RunSettings, SendMode, TaskStatus,
};
pub use record::{Page, Position, Record};
pub use session_log::{LogOptions, SessionLog};
pub use sink::{EventSink, Settle};
pub use source::{EventSource, Origin};
#[doc(inline)]
pub use view::{EventFilter, EventStreamExt};

// The layers in whose types this one speaks, so that it can be used alone.
pub use mainstem_message as message;
