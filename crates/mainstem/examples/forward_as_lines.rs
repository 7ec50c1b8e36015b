//! Pattern 4: forward the stream to another process, each event with its source. Here as lines of
//! JSON; a line is what an SSE frame's `data` would be.
//!
//! `cargo run -p mainstem --example forward_as_lines`

#[path = "shared/fleet.rs"]
mod fleet;

use std::io::Write as _;

use mainstem::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut lines = fleet::fleet()?.stream_events("Compare Paris and Rome").into_ndjson();
    while let Some(line) = lines.next().await {
        // A reader that is gone shows here; returning drops the run, and with it every connection
        // to a model.
        std::io::stdout().lock().write_all(line.as_bytes())?;
    }
    Ok(())
}
