//! A cassette for programs that are not tests: records or replays a vendor's responses until its
//! standard input ends.
//!
//! `cargo run -q -p mainstem-cassette --example cassette -- demo.jsonl https://api.openai.com/v1`
//! prints its address; requests to it, such as those of `OPENAI_BASE_URL=… mainstem run "Hi"`, are
//! recorded or replayed as `MAINSTEM_CASSETTE` sets.
#![expect(clippy::print_stdout, reason = "it tells its address")]

use std::error::Error;

use mainstem_cassette::Cassette;
use tokio::io::AsyncReadExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [tape, upstream] = &arguments[..] else { return Err("usage: cassette TAPE URL".into()) };
    let cassette = Cassette::open(tape, upstream).await?;
    println!("{}", cassette.url());
    let mut rest = Vec::new();
    tokio::io::stdin().read_to_end(&mut rest).await?;
    cassette.finish().await.map_err(|error| error.to_string().into())
}
