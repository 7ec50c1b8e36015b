//! The server over real HTTP: streams and where they go on, steering, who may do what, and what is
//! said to those who may not.
#![expect(clippy::unwrap_used, reason = "a test says what it found by failing")]

mod a2a;
mod agent_protocol;
mod bounds;
mod crowd;
mod data;
mod fleet;
mod hostile;
mod jobs;
mod kept;
mod langgraph;
mod limits;
mod links;
mod live;
mod operate;
#[cfg(feature = "page")]
mod page;
mod protocols;
mod record;
mod rig;
mod runs;
mod servers;
mod steer;
mod streams;
