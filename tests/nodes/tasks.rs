//! Background tasks whose server is killed.

use std::time::Duration;

use futures_util::TryStreamExt;
use mainstem::{
    api::{AnySession, EventQuery, Host, NewRun, TaskQuery},
    client::Server,
    event::{AgentEvent, EventKind, TaskStatus},
    message::Failure,
    model::scripted::Turn,
    prelude::*,
    task::TaskRecord,
};
use mainstem_testing::{laws, render};
use serde_json::{Map, Value, json};
use tokio::{
    net::TcpListener,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{answer_all, until_asked},
    cluster::Cluster,
};

/// How long the tasks of a killed server may be without one.
const TAKEN_OVER: Duration = Duration::from_secs(15);

/// Serves an agent that asks for an approval, in this process. Returns its address.
async fn far() -> String {
    let turns = [Turn::new().text("May I?").call("poke", json!({})), Turn::new().text("It is so.")];
    let poke = tool_fn("poke", "P", |_, _: Map<String, Value>| async { Ok::<_, ToolError>("ok") });
    let harness = Harness::builder("far", ScriptedModel::new().agent("far", turns))
        .with_tool(poke)
        .with_permissions(RuleSet::default().with_pattern(Effect::Ask, "poke").unwrap())
        .build()
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = mainstem_server::Server::new(harness).build().unwrap();
    #[expect(clippy::disallowed_methods, reason = "ends with the test\'s runtime")]
    tokio::spawn(async move { server.serve(listener, CancellationToken::new()).await });
    url
}

/// Reads the records from the database.
fn recorded(cluster: &Cluster) -> Vec<TaskRecord> {
    let rows = cluster.database.sql("SELECT record FROM mainstem.tasks ORDER BY created_at");
    rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect()
}

async fn until(what: &str, cluster: &Cluster, is_true: impl Fn(&TaskRecord) -> bool) -> TaskRecord {
    let begun = Instant::now();
    loop {
        let tasks = recorded(cluster);
        if let [task] = &*tasks
            && is_true(task)
        {
            return task.clone();
        }
        assert!(begun.elapsed() < TAKEN_OVER, "{what}: {tasks:?}");
        sleep(Duration::from_millis(50)).await;
    }
}

async fn events(session: &dyn AnySession) -> Vec<AgentEvent> {
    let events: Vec<_> = session.events(EventQuery::stored()).try_collect().await.unwrap();
    laws(&events).unwrap_or_else(|broken| panic!("{broken}\n{}", render(&events)));
    events
}

/// Runs until the leader has answered; its task goes on.
async fn begin(session: &dyn AnySession, text: &str) {
    let begun = session.run(NewRun::new(text)).await.unwrap();
    begun.events.try_collect::<Vec<_>>().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_at_a_remote_is_continued_by_a_server_that_lives() {
    let mut cluster = Cluster::with_far(3, &far().await).await;
    let at = |server: usize| Server::at(&cluster.address_of(server)).unwrap().open("s").unwrap();
    begin(&at(0), "<far>").await;
    let waits = |task: &TaskRecord| task.status == TaskStatus::WaitingConfirm;
    let was = until("it asks", &cluster, waits).await;
    // The session is idle when its server is killed, and nothing is asked of the others.
    assert!(was.is_resumable);
    let (left, asked) = (at(1), at(2));
    cluster.servers[0].kill();
    let taken = until("it has another executor", &cluster, |task| task.executor != was.executor).await;
    assert!(taken.fence > was.fence && !taken.is_over(), "{taken:?}");
    until_asked(&asked).await;
    answer_all(&left).await;
    let done = until("it ends", &cluster, TaskRecord::is_over).await;
    assert_eq!((done.status, done.result.as_deref()), (TaskStatus::Completed, Some("It is so.")));
    // The child has one turn.
    let events = events(&left).await;
    let ends = |event: &&AgentEvent| event.depth() == 1 && matches!(event.kind, EventKind::AgentEnd { .. });
    assert_eq!(events.iter().filter(ends).count(), 1, "{}", render(&events));
}

/// A server may look for such tasks before it looks for such turns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_with_a_task_at_a_remote_is_resumed() {
    let mut cluster = Cluster::with_far(3, &far().await).await;
    let at = |server: usize| Server::at(&cluster.address_of(server)).unwrap().open("s").unwrap();
    at(0).run(NewRun::new("<far> and wait")).await.unwrap();
    let was = until("it asks", &cluster, |task| task.status == TaskStatus::WaitingConfirm).await;
    let both = async {
        while at(0).fleet().await.unwrap().confirmations.len() < 2 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(TAKEN_OVER, both).await.expect("the leader asks, too");
    cluster.servers[0].kill();
    until("it has another executor", &cluster, |task| task.executor != was.executor).await;
    let runs = || cluster.database.sql("SELECT runs FROM mainstem.sessions");
    let begun = Instant::now();
    while runs() != "2" {
        assert!(begun.elapsed() < TAKEN_OVER, "{}", runs());
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_whose_server_is_killed_fails_and_the_next_turn_is_told() {
    let mut cluster = Cluster::start(2).await;
    let at = |server: usize| Server::at(&cluster.address_of(server)).unwrap().open("s").unwrap();
    begin(&at(0), "<kid>").await;
    until("it runs", &cluster, |task| task.status == TaskStatus::Running).await;
    let other = at(1);
    cluster.servers[0].kill();
    let next = other.run(NewRun::new("and now?")).await.unwrap();
    next.events.try_collect::<Vec<_>>().await.unwrap();
    let server = Server::at(&cluster.address_of(1)).unwrap();
    let tasks = server.tasks(&TaskQuery::default()).await.unwrap();
    let lost = &tasks[0];
    let code = lost.error.as_ref().map(|error: &Failure| error.code.as_str());
    assert_eq!((lost.status, code), (TaskStatus::Failed, Some("restarted")), "{lost:?}");
    assert!(lost.delivered_at.is_some(), "{lost:?}");
    let events = events(&other).await;
    let hints =
        events.iter().filter(|event| event.is_root() && matches!(event.kind, EventKind::HintBlock { .. }));
    assert_eq!(hints.count(), 1, "{}", render(&events));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_that_waits_is_delivered_once_by_another_server() {
    let mut cluster = Cluster::start(2).await;
    let at = |server: usize| Server::at(&cluster.address_of(server)).unwrap().open("s").unwrap();
    begin(&at(0), "<kid>").await;
    let done = until("it ends", &cluster, TaskRecord::is_over).await;
    assert_eq!((done.status, done.delivered_at), (TaskStatus::Completed, None));
    let other = at(1);
    cluster.servers[0].kill();
    for _ in 0..2 {
        let next = other.run(NewRun::new("and now?")).await.unwrap();
        next.events.try_collect::<Vec<_>>().await.unwrap();
    }
    let told = events(&other).await;
    let reports = |event: &&AgentEvent| matches!(&event.kind, EventKind::HintBlock { hint, .. } if hint.contains("eight nine ten"));
    assert_eq!(told.iter().filter(reports).count(), 1, "{}", render(&told));
    let first = recorded(&cluster).into_iter().find(|task| task.id == done.id).unwrap();
    assert!(first.delivered_at.is_some());
}
