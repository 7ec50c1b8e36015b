//! One binary of integration tests: timelines of the whole engine, each checked against the laws and pinned as a snapshot.

mod fleet;
mod single;
mod support;
