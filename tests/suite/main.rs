//! The suite of one server, unchanged, against three that share a PostgreSQL behind a balancer:
//! each request reaches the next of them.
//!
//! Left out are the modules about what one server has for itself: its limits and figures (`bounds`,
//! `crowd`, `limits`), and its file (`record`).
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test says what it found by failing")]

mod servers;

#[path = "../../crates/mainstem-server/tests/http/a2a.rs"]
mod a2a;
#[path = "../../crates/mainstem-server/tests/http/agent_protocol.rs"]
mod agent_protocol;
#[path = "../../crates/mainstem-server/tests/http/data.rs"]
mod data;
#[path = "../../crates/mainstem-server/tests/http/fleet.rs"]
mod fleet;
#[path = "../../crates/mainstem-server/tests/http/hostile.rs"]
mod hostile;
#[path = "../../crates/mainstem-server/tests/http/jobs.rs"]
mod jobs;
#[path = "../../crates/mainstem-server/tests/http/kept.rs"]
mod kept;
#[path = "../../crates/mainstem-server/tests/http/langgraph.rs"]
mod langgraph;
#[path = "../../crates/mainstem-server/tests/http/links.rs"]
mod links;
#[path = "../../crates/mainstem-server/tests/http/live.rs"]
mod live;
#[path = "../../crates/mainstem-server/tests/http/operate.rs"]
mod operate;
#[path = "../../crates/mainstem-server/tests/http/page.rs"]
mod page;
#[path = "../../crates/mainstem-server/tests/http/protocols.rs"]
mod protocols;
#[path = "../../crates/mainstem-server/tests/http/rig.rs"]
mod rig;
#[path = "../../crates/mainstem-server/tests/http/runs.rs"]
mod runs;
#[path = "../../crates/mainstem-server/tests/http/steer.rs"]
mod steer;
#[path = "../../crates/mainstem-server/tests/http/streams.rs"]
mod streams;
