//! What becomes of runs whose server is killed: they are resumed or closed, as their server or
//! their caller says, and a turn that ends servers is given up.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use mainstem::{
    api::{AnySession, EventQuery, Host, JobState, NewJob, NewRun, RunOptions, RunState, RunView},
    client::Server,
    event::{CancelReason, EventKind, OnLost},
    journal::Journal,
    message::SessionId,
    prelude::*,
};
use mainstem_postgres::Settings;
use mainstem_testing::{laws, render};
use tokio::time::{Instant, sleep};

use crate::{client::until_asked, cluster::Cluster};

fn run(on_lost: Option<OnLost>) -> NewRun {
    NewRun::new("go").with_options(RunOptions { on_lost, ..RunOptions::default() })
}

/// Kills the server of a run that waits for an approval. Returns the runs of the session once the
/// other server has closed that run, or has resumed its turn and asks again.
async fn after_the_kill(cluster: &mut Cluster, on_lost: Option<OnLost>) -> Vec<RunView> {
    let at = |server: usize| Server::at(&cluster.address_of(server)).unwrap().open("s").unwrap();
    at(0).run(run(on_lost)).await.unwrap();
    until_asked(&at(0)).await;
    let other = at(1);
    cluster.servers[0].kill();
    let begun = Instant::now();
    let mut closed_at = None;
    loop {
        let runs = other.runs().await.unwrap();
        if runs[0].status.is_over() {
            // Long enough for another run to begin.
            let closed_at: Instant = *closed_at.get_or_insert_with(Instant::now);
            if runs.len() > 1 || closed_at.elapsed() > Duration::from_secs(3) {
                return runs;
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{runs:?}");
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_run_is_resumed_or_closed_as_its_caller_says() {
    for (closes, on_lost, resumed) in
        [(false, Some(OnLost::Close), false), (true, None, false), (true, Some(OnLost::Resume), true)]
    {
        let mut cluster = if closes { Cluster::that_close(2).await } else { Cluster::start(2).await };
        let runs = after_the_kill(&mut cluster, on_lost).await;
        let error = runs[0].error.as_ref().unwrap();
        assert_eq!((runs[0].status, &*error.code), (RunState::Error, "restarted"), "{closes}, {on_lost:?}");
        assert_eq!(runs.len(), if resumed { 2 } else { 1 }, "{closes}, {on_lost:?}: {runs:?}");
        let figures = reqwest::get(format!("{}/metrics", cluster.address_of(1))).await.unwrap();
        let figures = figures.text().await.unwrap();
        assert!(figures.contains("\nmainstem_sessions_taken_over_total 1\n"), "{figures}");
        let other = Server::at(&cluster.address_of(1)).unwrap().open("s").unwrap();
        if resumed {
            assert_eq!(runs[1].resumes.as_ref(), Some(&runs[0].id));
            continue;
        }
        // A caller may resume it; that run has the setting of the first.
        let next = other.run(NewRun::resuming()).await.unwrap();
        let started = next.events.take(1).try_collect::<Vec<_>>().await.unwrap().remove(0);
        let EventKind::AgentStart { settings: Some(settings), .. } = &started.kind else {
            panic!("{started}")
        };
        assert_eq!((settings.on_lost, settings.resumes.as_ref()), (on_lost, Some(&runs[0].id)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_whose_run_is_closed_ends_with_it() {
    let mut cluster = Cluster::start(2).await;
    let host = |server: usize| Server::at(&cluster.address_of(server)).unwrap();
    let at = |server: usize| host(server).open("s").unwrap();
    let job = NewJob::new(run(Some(OnLost::Close))).with_session("s".parse::<SessionId>().unwrap());
    let job = host(0).add_job(job).await.unwrap();
    let begun = Instant::now();
    while at(0).fleet().await.map_or(true, |fleet| fleet.confirmations.is_empty()) {
        assert!(begun.elapsed() < Duration::from_secs(10));
        sleep(Duration::from_millis(50)).await;
    }
    let nodes = mainstem_postgres::nodes(&Settings::parse(&cluster.database.url()).unwrap()).await.unwrap();
    let runner = usize::from(nodes.iter().any(|node| node.runs == 1 && node.name == "node-1"));
    let other = host(1 - runner);
    cluster.servers[runner].kill();
    let begun = Instant::now();
    let ended = loop {
        let job = other.job(&job.id).await.unwrap();
        if job.status == JobState::Ended {
            break job;
        }
        assert!(begun.elapsed() < Duration::from_secs(40), "{job:?}");
        sleep(Duration::from_millis(100)).await;
    };
    let last = ended.last_run.unwrap();
    assert_eq!((last.status, last.error.unwrap().code.as_str()), (RunState::Error, "restarted"));
    assert_eq!(other.open("s").unwrap().runs().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_in_which_three_servers_have_ended_is_given_up() {
    let mut cluster = Cluster::start(4).await;
    let at = |cluster: &Cluster, server: usize| {
        Server::at(&cluster.address_of(server)).unwrap().open("s").unwrap()
    };
    // However far a run comes before its server is killed, the next one waits for an approval.
    at(&cluster, 0).run(NewRun::new("<ask>")).await.unwrap();
    let mut ended = Vec::new();
    for count in 1..=3 {
        // Whichever server has the turn, once its run is recorded.
        let sql = format!(
            "SELECT n.name FROM mainstem.sessions s JOIN mainstem.nodes n ON n.no = s.node
             WHERE s.runs = {count} AND s.run IS NOT NULL"
        );
        let begun = Instant::now();
        let owner = loop {
            let name = cluster.database.sql(&sql);
            let owner = (0..4).find(|server| name == format!("node-{server}"));
            if let Some(owner) = owner.filter(|owner| !ended.contains(owner)) {
                break owner;
            }
            assert!(begun.elapsed() < Duration::from_secs(15), "{count}: {name:?}, {ended:?}");
            sleep(Duration::from_millis(50)).await;
        };
        cluster.servers[owner].kill();
        ended.push(owner);
    }
    let last = (0..4).find(|server| !ended.contains(server)).unwrap();
    let session = at(&cluster, last);
    let begun = Instant::now();
    loop {
        let runs = session.runs().await.unwrap();
        if runs.iter().all(|run| run.status.is_over()) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{runs:?}");
        sleep(Duration::from_millis(100)).await;
    }
    // Long enough for another run to begin.
    sleep(Duration::from_secs(3)).await;
    let runs = session.runs().await.unwrap();
    assert_eq!(runs.len(), 3, "{runs:?}");
    let events: Vec<_> = session.events(EventQuery::stored()).try_collect().await.unwrap();
    laws(&events).unwrap_or_else(|broken| panic!("{broken}\n{}", render(&events)));
    // A caller may resume it.
    let next = session.run(NewRun::resuming()).await.unwrap();
    until_asked(&session).await;
    assert!(!next.run.view().await.unwrap().status.is_over());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_goes_on_at_another_server_if_its_spec_says_so() {
    let mut cluster = Cluster::start(2).await;
    let at = |server: usize| Server::at(&cluster.address_of(server)).unwrap().open("s").unwrap();
    let run = at(0).run(NewRun::new("<keen>")).await.unwrap();
    let of_child = |event: &AgentEvent| event.agent_id() == "keen";
    let said = run.events.try_filter(|event| {
        std::future::ready(of_child(event) && matches!(event.kind, EventKind::TextBlockDelta { .. }))
    });
    std::pin::pin!(said).next().await.unwrap().unwrap();
    let other = at(1);
    cluster.servers[0].kill();
    let begun = Instant::now();
    let tasks = loop {
        let tasks = other.tasks().await.unwrap();
        if !tasks.is_empty() && tasks.iter().all(|task| task.status.is_terminal()) {
            break tasks;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{tasks:?}");
        sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(tasks.len(), 1, "{tasks:?}");
    assert_eq!(tasks[0].result.as_deref(), Some("So it is."));
    let events: Vec<_> = other.events(EventQuery::stored()).try_collect().await.unwrap();
    laws(&events).unwrap_or_else(|broken| panic!("{broken}\n{}", render(&events)));
    let ends = events.iter().filter(|event| of_child(event)).filter_map(|event| match &event.kind {
        EventKind::AgentEnd { outcome, .. } => Some(outcome.as_str()),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), ["error", "success"], "{}", render(&events));
}

/// A process that opens a session ends the run that was cut off. If it does not resume the turn,
/// because it ends itself, another server does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_whose_run_another_process_has_ended_is_resumed_by_a_server() {
    let mut cluster = Cluster::start(2).await;
    let at = |server: usize| Server::at(&cluster.address_of(server)).unwrap().open("s").unwrap();
    at(0).run(NewRun::new("go")).await.unwrap();
    until_asked(&at(0)).await;
    cluster.servers[1].pause();
    cluster.servers[0].kill();
    let node = cluster.join().await;
    let harness =
        Harness::builder("main", ScriptedModel::new()).with_journal(node.journal()).build().unwrap();
    let begun = Instant::now();
    let session = loop {
        match harness.open_session("s").await {
            Ok(session) => break session,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(10), "{error}"),
        }
        sleep(Duration::from_millis(100)).await;
    };
    assert!(session.runs()[0].end.is_some());
    drop(session);
    node.journal().close().await.unwrap();
    let stored = || cluster.database.sql("SELECT runs, cut IS NOT NULL FROM mainstem.sessions");
    assert_eq!(stored(), "1|t");
    // The server is not asked.
    cluster.servers[1].resume();
    let begun = Instant::now();
    while stored() != "2|f" {
        assert!(begun.elapsed() < Duration::from_secs(15), "{}", stored());
        sleep(Duration::from_millis(100)).await;
    }
    let runs = Server::at(&cluster.address_of(1)).unwrap().open("s").unwrap().runs().await.unwrap();
    assert_eq!(runs[1].resumes.as_ref(), Some(&runs[0].id), "{runs:?}");
}

/// A run that is cancelled in the queue comes after the run that is cut off, and does not count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_never_began_does_not_decide_what_becomes_of_the_turn() {
    for (on_lost, expected) in [(OnLost::Close, "1|f"), (OnLost::Resume, "2|f")] {
        let mut cluster = match on_lost {
            OnLost::Close => Cluster::start(2).await,
            OnLost::Resume => Cluster::that_close(2).await,
        };
        let first = Server::at(&cluster.address_of(0)).unwrap().open("s").unwrap();
        let cut = first.run(run(Some(on_lost))).await.unwrap().run;
        until_asked(&first).await;
        let queued = first.run(NewRun { queue: true, ..NewRun::new("later") }).await.unwrap().run;
        queued.cancel(CancelReason::user("the test")).await.unwrap();
        while !queued.view().await.unwrap().status.is_over() {
            sleep(Duration::from_millis(20)).await;
        }
        cluster.servers[0].kill();
        let is_open = format!("SELECT coalesce(run, '') = '{}' FROM mainstem.sessions", cut.id());
        let begun = Instant::now();
        while cluster.database.sql(&is_open) == "t" {
            assert!(begun.elapsed() < Duration::from_secs(15), "{on_lost:?}");
            sleep(Duration::from_millis(100)).await;
        }
        // Long enough for another run to begin. The run that never began counts as one there.
        sleep(Duration::from_secs(3)).await;
        let sql = "SELECT runs - 1, cut IS NOT NULL FROM mainstem.sessions";
        assert_eq!(cluster.database.sql(sql), expected, "{on_lost:?}");
    }
}
