//! What a server bears: the figures of docs/performance.md.
//!
//! `cargo run --release -p mainstem-server --example load`; everything is in one process: the
//! agents, whose models are scripts, the journal in a file, the server, and its clients.

use std::{
    error::Error,
    io::Write as _,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, future::join_all};
use mainstem::{
    event::{AgentEvent, Clock, RandomIds, SystemClock},
    journal::{Checkpoint, Journal, SqliteJournal},
    model::scripted::Turn,
    prelude::{AgentSpec, Harness, ScriptedModel},
};
use mainstem_server::Server;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

type Fallible<T> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Fallible<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    say("sessions at once  events/s  latency p50  p99  memory")?;
    for sessions in [1, 20] {
        many(sessions).await?;
    }
    say("\nreaders  the run takes  memory above none")?;
    let none = readers(0, false).await?;
    for (count, is_stuck) in [(1, false), (20, false), (20, true)] {
        let (took, memory) = readers(count, is_stuck).await?;
        let name = if is_stuck { "20 and one that never reads".to_owned() } else { count.to_string() };
        let ratio = took.as_secs_f64() / none.0.as_secs_f64();
        say(&format!(
            "{name:<28} {took:>8.2?} ({ratio:.2} of none)  {:>5} MiB",
            memory.saturating_sub(none.1) >> 20
        ))?;
    }
    say("\nevents so far  append µs  tail p50 µs  /fleet ms  memory")?;
    million().await
}

/// A server on a fleet of scripts, with a journal of its own.
struct Rig {
    url: String,
    harness: Harness,
    client: Client,
    stop: CancellationToken,
    _dir: tempfile::TempDir,
}

impl Rig {
    async fn start(model: ScriptedModel) -> Fallible<Self> {
        let dir = tempfile::tempdir()?;
        let journal = SqliteJournal::open(dir.path().join("journal.db"))?;
        let harness =
            Harness::builder("main", model).with_ids(RandomIds).with_subagent(AgentSpec::new("kid", "A kid"));
        let harness = harness.with_journal(journal).build()?;
        let server = Server::new(harness.clone()).build()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        #[expect(clippy::disallowed_methods, reason = "it ends with the process")]
        tokio::spawn(async move { server.serve(listener, stopped).await.is_ok() });
        Ok(Self { url, harness, client: Client::new(), stop, _dir: dir })
    }

    async fn begin(&self, session: &str) -> Fallible<Value> {
        let request = self.client.post(format!("{}/sessions/{session}/runs", self.url));
        Ok(request.json(&json!({ "input": "go" })).send().await?.error_for_status()?.json().await?)
    }

    /// Reads a run to its end; how long each event took from when it happened.
    async fn follow(&self, session: &str, run: &Value) -> Fallible<Vec<u64>> {
        let run = run["id"].as_str().ok_or("no run")?;
        let path = format!("{}/sessions/{session}/events?run={run}", self.url);
        let response = self.client.get(path).header("accept", "application/x-ndjson").send().await?;
        let (mut body, mut text, mut took) = (response.bytes_stream(), Vec::new(), Vec::new());
        while let Some(piece) = body.next().await {
            text.extend_from_slice(&piece?);
            let now = SystemClock.now().as_micros();
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            for line in text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let event: AgentEvent = serde_json::from_slice(line)?;
                took.push(now.saturating_sub(event.at.as_micros()));
            }
            text.drain(..whole);
        }
        Ok(took)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Each session has a root with ten children at once, each of which says 200 words, a hundred a
/// second.
async fn many(sessions: usize) -> Fallible<()> {
    let spawn = json!({ "agent_id": "kid", "task": "Say it." });
    let ten = (0..10).fold(Turn::new(), |turn, _| turn.call("agent_spawn", spawn.clone()));
    let words = Turn::new().pace(Duration::from_millis(10)).say(&"word ".repeat(200));
    let model = ScriptedModel::new().agent("main", [ten, Turn::new().text("Done.")]).agent("kid", [words]);
    let rig = Rig::start(model).await?;
    let begun = Instant::now();
    let work = (0..sessions).map(|number| {
        let (rig, session) = (&rig, format!("s{number}"));
        async move {
            let run = rig.begin(&session).await?;
            rig.follow(&session, &run).await
        }
    });
    let mut took = Vec::new();
    for one in join_all(work).await {
        took.extend(one?);
    }
    let seconds = begun.elapsed().as_secs_f64();
    took.sort_unstable();
    let at = |share: f64| Duration::from_micros(took[((took.len() - 1) as f64 * share) as usize]);
    say(&format!(
        "{sessions:<17} {:>8.0}  {:>11.1?}  {:>7.1?}  {} MiB",
        took.len() as f64 / seconds,
        at(0.5),
        at(0.99),
        memory() >> 20
    ))
}

/// How long a run takes that says 2 000 words, one a millisecond, while so many read it, and one
/// more that does not.
async fn readers(count: usize, is_stuck: bool) -> Fallible<(Duration, usize)> {
    let words = Turn::new().pace(Duration::from_millis(1)).say(&"word ".repeat(2_000));
    let rig = Rig::start(ScriptedModel::new().agent("main", [words])).await?;
    let run = rig.begin("s").await?;
    let stuck = match is_stuck {
        true => Some(rig.client.get(format!("{}/sessions/s/events", rig.url)).send().await?),
        false => None,
    };
    for one in join_all((0..count).map(|_| rig.follow("s", &run))).await {
        let events = one?.len();
        if events < 2_000 {
            return Err(format!("a reader has {events} events only").into());
        }
    }
    let session = rig.harness.open_session("s").await?;
    if let Some(active) = session.active() {
        active.outcome().await;
    }
    drop(stuck);
    let events: Vec<_> = session.subscribe_from(1).take(session.log().last_seq() as usize).collect().await;
    let at = |event: Option<&AgentEvent>| event.map_or(0, |event| event.at.as_micros());
    Ok((Duration::from_micros(at(events.last()) - at(events.first())), memory()))
}

/// A session of a million events, in ten runs.
async fn million() -> Fallible<()> {
    let turns = (0..10).map(|_| Turn::new().repeat("some words ", 100_000)).collect::<Vec<_>>();
    let rig = Rig::start(ScriptedModel::new().agent("main", turns)).await?;
    let session = rig.harness.open_session("s").await?;
    for _ in 0..10 {
        let before = session.log().last_seq();
        let begun = Instant::now();
        let mut run = session.run("go")?;
        let mut waits = Vec::new();
        while let Some(event) = run.next().await {
            waits.push(SystemClock.now().as_micros().saturating_sub(event.at.as_micros()));
        }
        let appended = (session.log().last_seq() - before) as f64;
        let append = begun.elapsed().as_secs_f64() * 1e6 / appended;
        waits.sort_unstable();
        let mut fleet = Vec::new();
        for _ in 0..20 {
            let begun = Instant::now();
            rig.client.get(format!("{}/sessions/s/fleet", rig.url)).send().await?.bytes().await?;
            fleet.push(begun.elapsed());
        }
        fleet.sort_unstable();
        say(&format!(
            "{:<13}  {append:>9.2}  {:>11}  {:>9.2}  {} MiB",
            session.log().last_seq(),
            waits[waits.len() / 2],
            fleet[10].as_secs_f64() * 1000.0,
            memory() >> 20
        ))?;
    }
    // Others have nothing to do meanwhile, so it is made at once.
    tokio::time::sleep(Duration::from_secs(5)).await;
    drop(session);
    let Rig { harness, stop, _dir: dir, .. } = &rig;
    stop.cancel();
    harness.shutdown(Duration::ZERO).await;
    let path = dir.path().join("journal.db");
    for name in ["with a checkpoint", "without"] {
        let copy = dir.path().join(name);
        std::fs::copy(&path, &copy)?;
        std::fs::copy(path.with_extension("db-wal"), copy.with_file_name(format!("{name}-wal")))?;
        let journal = SqliteJournal::open(&copy)?;
        if name == "without" {
            journal
                .store_checkpoint(
                    &mainstem::message::SessionId::from_lossy("s"),
                    Checkpoint { seq: 1, state: String::new() },
                )
                .await?;
        }
        let harness = Harness::builder("main", ScriptedModel::new()).with_journal(journal).build()?;
        let begun = Instant::now();
        harness.open_session("s").await?;
        say(&format!("opened {name} in {:.1?}", begun.elapsed()))?;
    }
    Ok(())
}

/// What the process has in memory, in bytes.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok()).unwrap_or(0) * 1024
}

fn say(line: &str) -> Fallible<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
