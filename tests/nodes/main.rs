//! Several servers over one PostgreSQL, behind a balancer, with faults: what any client sees is
//! what is recorded, and everything that was asked for is done once.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test says what it found by failing")]

mod checker;
mod client;
mod cluster;
mod drain;
mod lost;
mod notices;
mod plain;
mod tasks;
