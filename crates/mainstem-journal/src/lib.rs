//! Durable records behind session logs.
//!
//! A [`Journal`] keeps the events of many sessions. Opening a session gives a [`Record`](mainstem_event::Record), which a
//! [`SessionLog`](mainstem_event::SessionLog) hands its events to and reads old ones from. [`SqliteJournal`] is one file of an embedded database
//! for all sessions of a workspace; [`MemoryJournal`] is for tests.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), mainstem_journal::JournalError> {
//! use std::sync::Arc;
//! use mainstem_event::{EventKind, LogOptions, SessionLog, SystemClock};
//! use mainstem_journal::{Journal, MemoryJournal};
//!
//! let journal = MemoryJournal::new();
//! let record = journal.open(&"session-1".into()).await?;
//! let log = SessionLog::with_record("session-1".into(), Arc::new(SystemClock), LogOptions::default(), record);
//! log.emit(EventKind::Custom { name: "hello".into(), value: serde_json::json!(1) });
//! drop(log);
//!
//! let events = journal.read(&"session-1".into(), 1, 100).await?;
//! assert_eq!(events[0].to_string(), "   1 main CUSTOM hello 1");
//! // Later, perhaps in another process: the log goes on where it stopped.
//! let record = journal.open(&"session-1".into()).await?;
//! let log = SessionLog::with_record("session-1".into(), Arc::new(SystemClock), LogOptions::default(), record);
//! assert_eq!(log.emit(EventKind::Custom { name: "again".into(), value: serde_json::json!(2) }), 2);
//! # Ok(())
//! # }
//! ```

mod claim;
mod error;
mod journal;
mod memory;
mod retention;
mod scoped;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlite")]
mod sync;

pub use claim::{CLAIM_LASTS, Claim, Claimed};
pub use error::JournalError;
pub use journal::{Checkpoint, Journal, RunPlace, SessionSummary};
pub use memory::MemoryJournal;
pub use retention::Retention;
pub use scoped::Scoped;
#[cfg(feature = "sqlite")]
pub use sqlite::{COMMIT_AFTER, SqliteJournal};
