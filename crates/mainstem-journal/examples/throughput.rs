//! What a record costs: the figures of docs/performance.md.
//!
//! `cargo run --release -p mainstem-journal --example throughput`, with a directory as its argument
//! to use another disk than that of `$TMPDIR`.

use std::{
    error::Error,
    io::Write as _,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use mainstem_event::{LogOptions, SessionLog, SystemClock};
use mainstem_journal::{Journal, MemoryJournal, SqliteJournal};
use mainstem_testing::journal::{agent_end, emit_run, root_sink, text_delta};

const EVENTS: u32 = 200_000;

/// One event in so many is durable.
const PROMISE: u32 = 1000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = match std::env::args_os().nth(1) {
        Some(directory) => tempfile::tempdir_in(PathBuf::from(directory))?,
        None => tempfile::tempdir()?,
    };
    let path = directory.path().join("journal.db");
    let memory = MemoryJournal::new();
    let sqlite = SqliteJournal::open(&path)?;
    append("none", &SessionLog::with("s".parse()?, Arc::new(SystemClock), LogOptions::default()), None)
        .await?;
    append("memory", &log(&memory).await?, Some(&memory)).await?;
    let log = log(&sqlite).await?;
    append("sqlite", &log, Some(&sqlite)).await?;
    replay(&log).await?;
    endings(&log).await?;
    let bytes = std::fs::metadata(&path)?.len() / u64::from(EVENTS);
    say(&format!("file    {bytes} bytes an event"))
}

async fn log(journal: &dyn Journal) -> Result<Arc<SessionLog>, Box<dyn Error>> {
    let record = journal.open(&"s".parse()?).await?;
    Ok(SessionLog::with_record("s".parse()?, Arc::new(SystemClock), LogOptions::default(), record))
}

async fn append(
    name: &str,
    log: &Arc<SessionLog>,
    journal: Option<&dyn Journal>,
) -> Result<(), Box<dyn Error>> {
    let sink = root_sink(log, "1");
    let (begun, mut inside) = (Instant::now(), Duration::ZERO);
    for n in 1..=EVENTS {
        let kind =
            if n % PROMISE == 0 { agent_end() } else { text_delta("a few words of text, as they come") };
        let before = Instant::now();
        sink.emit(kind);
        inside += before.elapsed();
        sink.settle().await;
    }
    if let Some(journal) = journal {
        journal.flush().await?;
    }
    let (all, micros) = (begun.elapsed(), |time: Duration| time.as_secs_f64() * 1e6 / f64::from(EVENTS));
    let rate = f64::from(EVENTS) / all.as_secs_f64();
    say(&format!(
        "{name:7} {rate:.0} events/s, {:.2} µs an event, {:.2} of them in emit",
        micros(all),
        micros(inside)
    ))
}

async fn replay(log: &Arc<SessionLog>) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let read = log.subscribe_from(1).take(EVENTS as usize).count().await;
    say(&format!("replay  {:.0} events/s", read as f64 / begun.elapsed().as_secs_f64()))
}

/// The time of a durable event on its own.
async fn endings(log: &Arc<SessionLog>) -> Result<(), Box<dyn Error>> {
    let mut reader = log.subscribe();
    let begun = Instant::now();
    for n in 0..200 {
        emit_run(log, &n.to_string(), 0);
        reader.by_ref().take(2).for_each(|_| std::future::ready(())).await;
    }
    say(&format!("ending  {:.0?} until a reader sees it", begun.elapsed() / 200))
}

fn say(line: &str) -> Result<(), Box<dyn Error>> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
