//! Test kit: a clock that obeys tokio's, ids that count, the [`laws`] of event streams, and [`timeline`],
//! which prints a run. Answers of real vendors are recorded by `mainstem-cassette`.
//!
//! With these a run is the same every time, byte for byte, so that a test pins it as a snapshot:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use futures_util::stream;
//! use mainstem_testing::{FakeClock, CountedIds, timeline};
//!
//! // let harness = Harness::builder("main", model).clock(FakeClock::default()).ids(CountedIds::default()).build()?;
//! // insta::assert_snapshot!(timeline(harness.stream_events("Hi")).await);
//! # let _ = (FakeClock::default(), CountedIds::default());
//! assert_eq!(timeline(stream::iter([])).await, "");
//! # }
//! ```

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
#[cfg(feature = "providers")]
pub mod provider;
pub mod raw;
mod server;
pub mod task_store;
mod timeline;

pub use clock::FakeClock;
pub use context::{ContextBuilder, child_context, context, log_of};
#[cfg(target_os = "linux")]
pub use faulty_files::{Fault, FaultyFiles, FileCall};
pub use faulty_journal::FaultyJournal;
pub use ids::CountedIds;
pub use laws::{Violation, laws};
#[cfg(shuttle)]
pub use models::in_all_orders;
pub use server::ModelServer;
pub use timeline::{render, timeline};
