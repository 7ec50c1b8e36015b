//! Pattern 1: a panel for each agent. Every instance gets a stream of its own; one that no caller
//! reads holds nothing up.
//!
//! `cargo run -p mainstem --example panel_per_agent`
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

#[path = "shared/fleet.rs"]
mod fleet;

use mainstem::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), mainstem::Error> {
    let run = fleet::fleet()?.stream_events("Compare Paris and Rome");
    run.for_each_lane(|lane| async move {
        let title = lane.key().map_or_else(|| "coordinator".to_owned(), ToString::to_string);
        let text: String = lane.text().collect().await;
        println!("┌ {title}\n│ {text}\n└");
    })
    .await;
    Ok(())
}
