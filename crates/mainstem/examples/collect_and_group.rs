//! Pattern 3: collect everything, and group it by who produced it.
//!
//! `cargo run -p mainstem --example collect_and_group`
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

#[path = "shared/fleet.rs"]
mod fleet;

use mainstem::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), mainstem::Error> {
    let groups = fleet::fleet()?.stream_events("Compare Paris and Rome").collect_by_agent().await;
    for (key, events) in &groups {
        let who = key.as_ref().map_or_else(|| "coordinator".to_owned(), ToString::to_string);
        let said: String = futures_util::stream::iter(events.clone()).text().collect().await;
        println!("{who}: {} events, {said:?}", events.len());
    }
    Ok(())
}
