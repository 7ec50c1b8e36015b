//! One binary of integration tests: timelines of the whole engine, each checked against the laws and pinned as a snapshot.
#![expect(clippy::unwrap_used, reason = "a test says what it found by failing")]

mod cancel;
mod fleet;
mod models;
mod patterns;
mod random;
mod readers;
mod single;
mod support;
