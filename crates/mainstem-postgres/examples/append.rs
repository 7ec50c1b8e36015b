//! How fast a node appends, as a ratio to plain `COPY` of the same rows into the same table; and
//! how long a commit takes to be seen at another node, as a ratio to `NOTIFY` alone.
//!
//! `cargo run --release -p mainstem-postgres --example append`
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement")]

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, future::join_all};
use mainstem_event::SessionLog;
use mainstem_journal::Journal;
use mainstem_postgres::{Node, Settings};
use mainstem_testing::{
    Postgres,
    journal::{open_log, text_delta},
};
use tokio_postgres::{AsyncMessage, NoTls, binary_copy::BinaryCopyInWriter, types::Type};

const SESSIONS: usize = 200;
const EACH: usize = 500;
/// Odd, so that there is one in the middle.
const ROUNDS: usize = 9;
const BATCH: usize = 1000;
const NOTICES: usize = 300;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let server = Postgres::start();
    let settings = Settings::parse(&server.url()).unwrap();
    let (here, there) = (Node::join(settings.clone()).await.unwrap(), Node::join(settings).await.unwrap());
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let appended = append(&here, round).await;
        let copied = copy(&server, round).await;
        let (appended, copied) = (rate(appended), rate(copied));
        println!("appended {appended:.0} events/s, COPY {copied:.0} rows/s: {:.2}", appended / copied);
        ratios.push(appended / copied);
    }
    ratios.sort_by(f64::total_cmp);
    println!("from {:.2} to {:.2}, the middle is {:.2}", ratios[0], ratios[ROUNDS - 1], ratios[ROUNDS / 2]);
    let (seen, told) = (see(&here, &there).await, notify(&server).await);
    for part in [50, 99] {
        let at = |times: &[Duration]| times[times.len() * part / 100].as_secs_f64() * 1e3;
        println!(
            "p{part}: seen {:.2} ms, NOTIFY {:.2} ms: {:.1}",
            at(&seen),
            at(&told),
            at(&seen) / at(&told)
        );
    }
}

fn rate(time: Duration) -> f64 {
    (SESSIONS * EACH) as f64 / time.as_secs_f64()
}

/// The time until so many events of so many sessions are committed.
async fn append(node: &Node, round: usize) -> Duration {
    let journal = node.journal();
    let names: Vec<_> = (0..SESSIONS).map(|session| format!("s-{round}-{session}")).collect();
    let logs = join_all(names.iter().map(|name| open_log(&journal, name))).await;
    let begun = Instant::now();
    for _ in 0..EACH {
        logs.iter().for_each(|log: &Arc<SessionLog>| _ = log.emit(text_delta("a few words of an answer")));
    }
    journal.flush().await.unwrap();
    let took = begun.elapsed();
    assert!(logs.iter().all(|log| log.committed() == Some(EACH as u64)));
    took
}

/// The time that plain `COPY` takes for the rows of a round, in transactions of so many rows.
async fn copy(server: &Postgres, round: usize) -> Duration {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    let copying = async {
        client.batch_execute("SET search_path = mainstem").await.unwrap();
        let of_round = format!(
            "SELECT session, seq, event FROM events JOIN sessions ON no = session WHERE name LIKE 's-{round}-%'"
        );
        let rows = client.query(&of_round, &[]).await.unwrap();
        let rows: Vec<(i64, i64, String)> =
            rows.iter().map(|row| (row.get::<_, i64>(0) + 1_000_000, row.get(1), row.get(2))).collect();
        let begun = Instant::now();
        for batch in rows.chunks(BATCH) {
            let sink = client.copy_in("COPY events FROM STDIN BINARY").await.unwrap();
            let mut writer = pin!(BinaryCopyInWriter::new(sink, &[Type::INT8, Type::INT8, Type::TEXT]));
            for (session, seq, event) in batch {
                writer.as_mut().write(&[session, seq, event]).await.unwrap();
            }
            writer.finish().await.unwrap();
        }
        assert_eq!(rows.len(), SESSIONS * EACH);
        begun.elapsed()
    };
    tokio::select! {
        took = copying => took,
        _ = connection => panic!("the connection has ended"),
    }
}

/// The times from an event's commit, as its own node sees it, until another node has read it.
async fn see(here: &Node, there: &Node) -> Vec<Duration> {
    let log = open_log(&here.journal(), "seen").await;
    let (reader, id) = (there.journal(), "seen".parse().unwrap());
    log.emit(text_delta("first"));
    here.journal().flush().await.unwrap();
    let mut changes = reader.changes(&id).await.unwrap().unwrap();
    let mut times = Vec::new();
    for seq in 2..NOTICES as u64 + 2 {
        log.emit(text_delta("next"));
        let begun = async {
            here.journal().flush().await.unwrap();
            Instant::now()
        };
        let seen = async {
            while reader.read(&id, seq, 1).await.unwrap().is_empty() {
                changes.next().await.unwrap();
            }
            Instant::now()
        };
        let (begun, seen) = tokio::join!(begun, seen);
        times.push(seen.saturating_duration_since(begun));
    }
    times.sort();
    times
}

/// The times of `NOTIFY`, from its answer until another connection has heard it.
async fn notify(server: &Postgres) -> Vec<Duration> {
    let (from, sending) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    let (to, mut hearing) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    let (heard, mut told) = tokio::sync::mpsc::channel(1);
    let hear = async {
        let mut messages = futures_util::stream::poll_fn(|cx| hearing.poll_message(cx));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(_) = message {
                heard.send(Instant::now()).await.unwrap();
            }
        }
    };
    let send = async {
        to.batch_execute("LISTEN measured").await.unwrap();
        let mut times = Vec::new();
        for _ in 0..NOTICES {
            from.batch_execute("NOTIFY measured").await.unwrap();
            let begun = Instant::now();
            times.push(told.recv().await.unwrap().saturating_duration_since(begun));
        }
        times.sort();
        times
    };
    tokio::select! {
        times = send => times,
        () = hear => panic!("the connection has ended"),
        _ = sending => panic!("the connection has ended"),
    }
}
