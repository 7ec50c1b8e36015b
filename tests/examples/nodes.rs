//! How many events one, two and three nodes record, and what 10 000 open sessions on three nodes
//! take. All nodes are in this process, with the database beside them.
//!
//! `cargo run --release -p mainstem-tests --example nodes`
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, future::join_all, stream};
use mainstem::{model::scripted::Turn, prelude::*};
use mainstem_postgres::{Node, Settings};
use mainstem_testing::Postgres;

/// The sessions of a throughput, and the deltas of each.
const SESSIONS: usize = 300;
const DELTAS: usize = 500;

/// The sessions that stay open.
const OPEN: usize = 10_000;

/// How many runs are begun at once.
const AT_ONCE: usize = 100;

#[tokio::main]
async fn main() {
    let mut one = 0.0;
    for nodes in 1..=3 {
        let server = Postgres::start();
        let fleet = fleet(&server, nodes, DELTAS).await;
        let begun = Instant::now();
        let events: usize = join_all((0..SESSIONS).map(|number| run(&fleet, number))).await.iter().sum();
        let rate = events as f64 / begun.elapsed().as_secs_f64();
        one = if nodes == 1 { rate } else { one };
        let size: usize =
            server.sql("SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables").parse().unwrap();
        let each = size / events;
        println!(
            "{nodes} nodes: {rate:.0} events/s, {:.2} of one, {each} bytes an event on disk",
            rate / one
        );
    }
    open_sessions().await;
}

/// Nodes, each with a harness.
async fn fleet(server: &Postgres, nodes: usize, deltas: usize) -> Vec<(Node, Harness)> {
    let mut fleet = Vec::new();
    for _ in 0..nodes {
        let node = Node::join(Settings::parse(&server.url()).unwrap()).await.unwrap();
        let turn = (0..deltas).fold(Turn::new(), |turn, _| turn.text("some words of it "));
        let model = ScriptedModel::new().agent("main", [turn]);
        let harness = Harness::builder("main", model);
        let harness = harness.with_journal(node.journal()).with_task_store(node.tasks()).build().unwrap();
        fleet.push((node, harness));
    }
    fleet
}

/// Runs a session to the end of its run, as its caller sees it. Returns the number of its events.
async fn run(fleet: &[(Node, Harness)], number: usize) -> usize {
    let (_, harness) = &fleet[number % fleet.len()];
    let session = harness.open_session(format!("s-{number}")).await.unwrap();
    session.run("go").unwrap().count().await
}

async fn open_sessions() {
    let server = Postgres::start();
    let fleet = Arc::new(fleet(&server, 3, 3).await);
    let (before, begun) = (resident(), Instant::now());
    let opened = stream::iter(0..OPEN).map(|number| {
        let fleet = fleet.clone();
        async move {
            let (_, harness) = &fleet[number % fleet.len()];
            let session = harness.open_session(format!("s-{number}")).await.unwrap();
            session.run("go").unwrap().count().await;
            session
        }
    });
    let sessions: Vec<_> = opened.buffer_unordered(AT_ONCE).collect().await;
    let took = begun.elapsed();
    let each = (resident() - before) as f64 / OPEN as f64 / 1024.0;
    println!("{} sessions in {:.0} s, {each:.1} KiB each", sessions.len(), took.as_secs_f64());
    // Idle: what is left are leases. The database counts what came before up to 10 s later.
    tokio::time::sleep(Duration::from_secs(15)).await;
    let connections = server.sql(
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
    );
    println!("{connections} connections of three nodes");
    let commits = || server.sql("SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'");
    let first: u64 = commits().parse().unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let last: u64 = commits().parse().unwrap();
    println!("{:.1} transactions a second while all are idle", (last - first) as f64 / 10.0);
}

/// The memory of this process, in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}
