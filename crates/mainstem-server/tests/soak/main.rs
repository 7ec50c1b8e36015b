//! Load on a server: ten thousand mixed runs that leave nothing behind, and a tenant that attacks
//! while another works. A binary of its own, and one test at a time: figures of the process and
//! latencies are compared.
#![expect(clippy::unwrap_used, reason = "a test fails where it unwraps")]

mod attack;
mod clients;
mod flat;
mod neighbour;
mod player;
mod process;
#[expect(dead_code, reason = "the other tests use what these do not")]
#[path = "../http/rig.rs"]
mod rig;
#[expect(dead_code, reason = "the other tests use what these do not")]
#[path = "../http/servers.rs"]
mod servers;

use std::{
    future::Future,
    sync::{Mutex, PoisonError},
};

/// Held by the test that runs.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs a test while no other runs.
fn alone(test: impl Future<Output = ()>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    mainstem_server::runtime().build().unwrap().block_on(test);
}

/// Whether the loops run in full.
fn is_slow() -> bool {
    std::env::var_os("RUN_SLOW_TESTS").is_some()
}
