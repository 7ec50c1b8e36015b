#![doc = include_str!("../README.md")]
//!
//! A [`Session`] is a conversation with an agent and its fleet; it has one log, and one run at a
//! time. A [`Run`] is the owned stream of one turn: poll it to make it go, drop it to stop it. A
//! [`RunHandle`] looks on and stops it from elsewhere.

mod agents;
mod checkpoints;
mod copy;
mod data;
mod deferred;
mod error;
mod handle;
pub mod jobs;
mod listing;
mod local;
mod moments;
mod options;
mod past;
mod reading;
mod records;
pub mod refusal;
mod run;
mod runs;
mod selection;
mod session;
mod sessions;
mod settings;
mod turn;
mod used;
pub mod view;
mod wake;

pub use agents::{AgentSource, RunAgents};
pub use copy::SessionCopy;
pub use data::data_id;
pub use error::{NothingToResume, RunActive, RunError};
pub use handle::RunHandle;
pub use listing::listing;
pub use mainstem_subagent::{AnswerError, Background, Decision, SpawnOptions};
pub use options::{RunOptions, RunRequest};
pub use records::{DeleteFiles, Keep, Records};
pub use run::Run;
pub use runs::{RunEnd, RunRecord, RunStatus};
pub use session::{FoundRun, Session, SessionBuilder};
pub use sessions::{DeleteError, InUse, LiveSession, OpenError, Sessions, Store};
pub use wake::OnTaskFinished;
