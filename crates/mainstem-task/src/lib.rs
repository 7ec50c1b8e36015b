#![doc = include_str!("../README.md")]
//!
//! [`TaskRecord`] describes a task and its status; [`TaskRecord::apply`] is the state machine,
//! pure. A [`TaskStore`] stores records: [`MemoryTaskStore`] for one process, [`FileTaskStore`] for
//! all processes that share a workspace, [`ScopedTaskStore`] for a tenant's part of either. The
//! [`TaskSet`] is the only place that spawns: it runs tasks, records their ends, notifies sessions,
//! holds the executor's lease, and stops all tasks.

mod error;
mod lease;
mod lease_renewal;
mod record;
mod set;
mod status;
mod store;
mod sync;

pub use error::{IllegalChange, TaskError};
pub use lease::{ExecutorId, LEASE_DURATION};
pub use record::{CancelRequest, TaskChange, TaskRecord};
pub use set::{CancelTask, NewTask, TaskEnd, TaskSet, Work};
pub use status::can_become;
pub use store::{Expected, FileTaskStore, MemoryTaskStore, ScopedTaskStore, TaskFilter, TaskStore};

// The layers in whose types this one speaks, so that it can be used alone.
pub use mainstem_event as event;
pub use mainstem_message as message;
