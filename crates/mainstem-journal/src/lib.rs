#![doc = include_str!("../README.md")]
//!
//! A [`Journal`] stores the events of many sessions. Opening a session returns a
//! [`Record`](mainstem_event::Record), to which a [`SessionLog`](mainstem_event::SessionLog)
//! appends its events and from which it reads old ones. [`SqliteJournal`] is one file of an
//! embedded database for all sessions of a workspace; [`MemoryJournal`] is for tests.

pub mod backend;
mod claim;
mod data;
mod error;
mod figures;
mod jobs;
mod journal;
mod link;
mod listing;
mod memory;
mod queued;
mod relay;
mod retention;
mod scoped;
#[cfg(feature = "sqlite")]
mod sqlite;
mod sync;

pub use claim::{CLAIM_LASTS, Claim, Claimed};
pub use data::{DATA_WAITS, MAX_WAITING_DATA, WHOLE};
pub use error::JournalError;
pub use figures::Figures;
pub use jobs::{
    Candidate, Cron, CronError, JOB_KEPT, JOB_LEASE, Job, JobChange, JobFault, JobRun, JobStatus, JobStore,
    MAX_LOSSES, ScopedJobs, Take, choose,
};
pub use journal::{ActiveSession, Changes, Checkpoint, Journal, RunPlace, SessionSummary};
pub use link::Link;
pub use listing::{JobListing, Listing, Part, Place, PlaceError};
pub use memory::MemoryJournal;
pub use queued::QueuedRun;
pub use relay::{Answer, Asked, Parts, Relay};
pub use retention::{Cut, Retention};
pub use scoped::Scoped;
#[cfg(feature = "sqlite")]
pub use sqlite::{COMMIT_AFTER, SqliteJournal};

// The layers in whose types this one speaks, so that it can be used alone.
pub use mainstem_event as event;
pub use mainstem_message as message;
