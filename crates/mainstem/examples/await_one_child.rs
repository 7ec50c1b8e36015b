//! Pattern 2: wait for one child's final reply while the stream is drawn elsewhere.
//!
//! `cargo run -p mainstem --example await_one_child`
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

#[path = "shared/fleet.rs"]
mod fleet;

use mainstem::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), mainstem::Error> {
    let run = fleet::fleet()?.stream_events("Compare Paris and Rome");
    let handle = run.handle();
    let drawn = run.fold(0, async |events, _| events + 1);
    let (events, reply) = tokio::join!(drawn, handle.final_reply_of("guide"));
    match reply {
        Ok(reply) => println!("the guide said: {}", reply.text()),
        Err(error) => println!("no word from the guide: {error}"),
    }
    println!("{events} events were drawn meanwhile");
    Ok(())
}
