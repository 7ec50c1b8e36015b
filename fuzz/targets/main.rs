//! Fuzz targets: every decoder that reads bytes from outside, with one property that each must
//! keep.
//!
//! A target replays its checked-in corpus (`fuzz/corpus/<target>/`), then edits it at random for a
//! second, or for a minute with `RUN_SLOW_TESTS`. An input that fails is printed escaped, with the
//! seed that repeats it; once fixed, it belongs in the corpus.
#![expect(clippy::unwrap_used, reason = "a panic is what a fuzz target reports")]

mod a2a;
mod agentscope;
mod agentscope_service;
mod corpus;
mod event_json;
mod front_matter;
mod http;
mod input;
mod journal;
mod langgraph;
mod mainstem_remote;
mod providers;
mod remote;
mod sse;

use std::alloc::System;

use cap::Cap;

/// All targets together allocate less than this: a decoder without a bound aborts the test.
const MEMORY: usize = 1 << 30;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, MEMORY);

/// Replays a target's corpus, then checks random edits of it.
macro_rules! fuzz {
    ($target:literal, $check:expr) => {
        fuzz!(crate::corpus::read($target), $check)
    };
    ($corpus:expr, $check:expr) => {{
        let corpus = $corpus;
        crate::corpus::replay(&corpus, $check);
        let seeds: Vec<_> = corpus.into_iter().map(|(_, bytes)| bytes).collect();
        bolero::check!()
            .with_iterations(crate::corpus::iterations())
            .with_test_time(crate::corpus::time())
            .with_type::<crate::input::Case>()
            .map(|case: crate::input::Case| case.apply(&seeds))
            .for_each(|input| crate::corpus::timed(input, $check));
    }};
}
use fuzz;
