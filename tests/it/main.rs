//! One binary of integration tests: timelines of the whole engine, each checked against the laws
//! and pinned as a snapshot.
#![expect(clippy::unwrap_used, reason = "a test says what it found by failing")]
#![expect(clippy::too_many_lines, reason = "a timeline is as long as it is")]

mod agent_tools;
mod artifacts;
mod background;
mod budget;
mod cancel;
mod cassettes;
mod compaction;
mod compat;
mod crashes;
mod data;
mod diagnostics;
mod encoders;
mod exported;
mod fleet;
mod generate;
mod journal;
mod leader;
mod limits;
mod lost;
mod many;
mod middleware;
mod models;
mod output;
mod patterns;
mod people;
mod persist;
#[cfg(unix)]
mod processes;
mod random;
mod random_tasks;
mod readers;
mod reasons;
mod recordings;
mod reload;
mod restart;
mod resume;
mod schema;
mod send;
mod sessions;
mod single;
mod skills;
mod spans;
mod starts;
mod support;
mod tenants;
mod windows;
mod workspace;
