#![doc = include_str!("../README.md")]

mod clock;
mod context;
#[cfg(target_os = "linux")]
mod faulty_files;
mod faulty_journal;
mod ids;
pub mod journal;

mod laws;
#[cfg(shuttle)]
mod models;
#[cfg(all(unix, feature = "postgres"))]
mod postgres;
#[cfg(feature = "providers")]
pub mod provider;
mod proxy;
pub mod raw;
#[cfg(feature = "recording")]
mod recording;
#[cfg(feature = "remote")]
pub mod remote;
mod server;
pub mod task_store;
mod timeline;
mod timelines;

pub use clock::FakeClock;
pub use context::{ContextBuilder, child_context, context, log_of};
#[cfg(target_os = "linux")]
pub use faulty_files::{Fault, FaultyFiles, FileCall};
pub use faulty_journal::FaultyJournal;
pub use ids::CountedIds;
pub use laws::{Violation, laws};
#[cfg(shuttle)]
pub use models::in_all_orders;
#[cfg(all(unix, feature = "postgres"))]
pub use postgres::{Postgres, Replica};
pub use proxy::Proxy;
#[cfg(feature = "recording")]
pub use recording::{Difference, Recording, RecordingError};
pub use server::ModelServer;
pub use timeline::{render, timeline};

// The layers in whose types this one speaks, so that it can be used alone.
pub use mainstem_event as event;
pub use mainstem_message as message;
pub use mainstem_model as model;
pub use mainstem_tool as tool;
