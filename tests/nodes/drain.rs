//! A server that is told to stop serves the runs that it has, and leaves everything else to others.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use mainstem::{
    api::{AnySession, Code, EventQuery, NewRun, RunState},
    client::Server,
    message::SessionId,
};
use mainstem_testing::laws;
use tokio::time::{Instant, sleep};

use crate::{
    client::{answer_all, one_run, read_through},
    cluster::Cluster,
};

const GRACE: Duration = Duration::from_secs(15);

async fn until_draining(address: &str) {
    while reqwest::get(format!("{address}/readyz")).await.unwrap().status() != 503 {
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_drains_serves_its_runs_and_leaves_the_rest() {
    let mut cluster = Cluster::with_grace(2, GRACE).await;
    let at = |server: usize, session: &str| {
        Server::at(&cluster.address_of(server)).unwrap().open(session).unwrap()
    };
    let (busy, idle) = ("busy", "idle".parse::<SessionId>().unwrap());
    one_run(&cluster.address_of(0), &idle, "run-0", None).await;
    // It asks, and goes on when it has its answer.
    let first = at(0, busy).run(NewRun::new("one")).await.unwrap();
    while at(0, busy).fleet().await.unwrap().confirmations.is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
    let queued = NewRun { queue: true, ..NewRun::new("two") };
    let second = at(0, busy).run(queued).await.unwrap().run;
    // A reader of the idle session at the server that stops; it never ends by itself.
    let mut reader = at(0, idle.as_str()).events(EventQuery::default());
    let mut seen = vec![reader.next().await.unwrap().unwrap()];

    let begun = Instant::now();
    cluster.servers[0].terminate();
    until_draining(&cluster.address_of(0)).await;
    let refused = at(0, "new").run(NewRun::new("go")).await.unwrap_err();
    assert_eq!(refused.problem().unwrap().code, Code::ShuttingDown, "{refused}");

    // The idle session is opened by the other server, and its reader goes on where it was.
    let run = one_run(&cluster.address_of(1), &idle, "run-1", None).await;
    assert!(begun.elapsed() < GRACE / 2, "{:?}", begun.elapsed());
    let last = run.last().unwrap().seq;
    while seen.last().unwrap().seq < last {
        seen.push(reader.next().await.unwrap().unwrap());
    }
    laws(&seen).unwrap();

    // The active run is read, and answered, through the server that does not have it.
    assert_eq!(at(1, busy).fleet().await.unwrap().confirmations.len(), 1);
    answer_all(&at(1, busy)).await;
    let read: Vec<_> = first.events.try_collect().await.unwrap();
    assert!(read.last().unwrap().to_string().contains("success"), "{:?}", read.last());
    assert!(begun.elapsed() < GRACE, "{:?}", begun.elapsed());

    // The queued one begins at the other server.
    loop {
        answer_all(&at(1, busy)).await;
        match at(1, busy).runs().await {
            Ok(runs) if runs.iter().any(|run| run.id == *second.id() && run.status == RunState::Success) => {
                break;
            }
            runs => assert!(begun.elapsed() < 2 * GRACE, "{runs:?}"),
        }
        sleep(Duration::from_millis(100)).await;
    }
    let last = at(1, busy).fleet().await.unwrap().seq;
    laws(&read_through(&cluster.address_of(1), &busy.parse().unwrap(), last).await).unwrap();
    cluster.servers[0].stop().await;
}
