//! Pattern 5: look at a part of the fleet only, by depth or by path.
//!
//! `cargo run -p mainstem --example filter_by_depth`
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

#[path = "shared/fleet.rs"]
mod fleet;

use mainstem::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), mainstem::Error> {
    let harness = fleet::fleet()?;
    let children: String = harness.stream_events("Compare Paris and Rome").at_depth(1).text().collect().await;
    println!("the researchers: {children}");

    let session = harness.open_session("s").await?;
    let run = session.run("Compare Paris and Rome")?;
    let below: String = run.under_path("s/researcher/guide").text().collect().await;
    println!("the guide below a researcher: {below}");
    Ok(())
}
