//! What an event says: its kinds, its envelope, and the values in them.

pub(crate) mod agent_event;
mod cancel;
mod child;
mod decision;
mod display;
pub(crate) mod kind;
mod source;
mod timestamp;

pub use self::{
    agent_event::{AgentEvent, EventData, MAX_LINE_BYTES, markdown_table},
    cancel::CancelReason,
    child::{ChildStatus, ChildSummary},
    decision::Decision,
    kind::{
        Background, CallPurpose, ConfirmResult, Discarded, EventKind, OnLost, Outcome, Rollup, RunBudget,
        RunSettings, SendMode, TaskStatus,
    },
    source::{EventSource, Origin},
    timestamp::{Timestamp, TimestampError},
};
