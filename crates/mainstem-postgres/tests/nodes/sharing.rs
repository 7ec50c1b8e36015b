//! Without faults: one node writes, all read.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, future::join_all};
use mainstem_event::{Clock, SystemClock, TaskStatus};
use mainstem_journal::{Journal, JournalError};
use mainstem_message::SessionId;
use mainstem_postgres::{Error, Node, Settings, nodes};
use mainstem_task::{ExecutorId, TaskFilter, TaskSet, TaskStore};
use mainstem_testing::{
    Postgres,
    journal::{agent_end, agent_start, emit_run, open_log, read_all, root_sink, text_delta},
    task_store::record,
};
use tokio::time::{Instant, timeout};

use crate::{LEASE, join, take, texts};

#[tokio::test]
async fn one_node_writes_a_session_and_another_reads_it_at_once() {
    let server = Postgres::start();
    let (here, there) = (join(&server.url()).await, join(&server.url()).await);
    let log = open_log(&here.journal(), "s").await;
    emit_run(&log, "1", 5);
    here.journal().flush().await.unwrap();
    assert_eq!(read_all(&there.journal(), "s").await, read_all(&here.journal(), "s").await);
    let id: SessionId = "s".parse().unwrap();
    assert!(there.journal().is_open(&id).await.unwrap());
    for busy in
        [there.journal().open(&id).await.err().unwrap(), there.journal().delete(&id).await.unwrap_err()]
    {
        assert!(matches!(busy, JournalError::Busy { .. }), "{busy}");
    }
    // Told of each change, not by asking: an interval is longer than this test may take.
    let mut changes = there.journal().changes(&id).await.unwrap().unwrap();
    for n in 0..20 {
        log.emit(text_delta(n.to_string()));
        let told = timeout(Duration::from_secs(5), changes.next()).await;
        assert!(told.expect("a notice").is_some());
    }
    drop(log);
    here.journal().flush().await.unwrap();
    assert!(!there.journal().is_open(&id).await.unwrap());
    emit_run(&open_log(&there.journal(), "s").await, "2", 1);
    there.journal().flush().await.unwrap();
    assert_eq!(read_all(&here.journal(), "s").await.len(), 30);
}

#[tokio::test]
async fn what_is_opened_to_read_is_no_node_and_changes_nothing() {
    let server = Postgres::start();
    let settings = || Settings::parse(&server.url()).unwrap();
    let empty = Node::read(settings()).await.unwrap_err();
    assert!(matches!(empty, Error::Empty { .. }), "{empty}");
    let node = join(&server.url()).await;
    let reader = Node::read(settings()).await.unwrap();
    let log = open_log(&node.journal(), "s").await;
    emit_run(&log, "1", 5);
    node.journal().flush().await.unwrap();
    assert_eq!(read_all(&reader.journal(), "s").await, read_all(&node.journal(), "s").await);
    let mut changes = reader.journal().changes(&"s".parse().unwrap()).await.unwrap().unwrap();
    log.emit(text_delta("more"));
    timeout(Duration::from_secs(5), changes.next()).await.expect("a notice").unwrap();
    let (journal, other) = (reader.journal(), "t".parse().unwrap());
    let refused = journal.open(&other).await.err().unwrap().to_string();
    assert!(refused.contains("it is opened to read"), "{refused}");
    let refused = journal.delete(&other).await.unwrap_err().to_string();
    assert!(refused.contains("read-only transaction"), "{refused}");
    let executor = ExecutorId::new("e");
    reader.tasks().renew(&executor, SystemClock.now()).await.expect_err("its transactions only read");
    assert_eq!(nodes(&settings()).await.unwrap().len(), 1);
    // A task whose executor has ended is shown as failed, and its record is left as it is.
    let mut task = record("task-1", "s", 0);
    task.executor = Some(ExecutorId::new("gone"));
    node.tasks().create(task).await.unwrap();
    let tasks = TaskSet::new(Arc::new(reader.tasks()), Arc::new(SystemClock), executor);
    let shown = tasks.list(&TaskFilter::default()).await.unwrap();
    assert_eq!(shown[0].status, TaskStatus::Failed);
    let kept = node.tasks().list(&TaskFilter::default()).await.unwrap();
    assert!(!kept[0].is_over(), "{kept:?}");
    reader.journal().close().await.unwrap();
}

#[tokio::test]
async fn nodes_that_want_a_session_at_once_get_it_one_after_the_other() {
    let server = Postgres::start();
    let nodes = join_all((0..4).map(|_| async { join(&server.url()).await })).await;
    for round in 0..20 {
        let id = format!("s-{round}").parse().unwrap();
        let journals: Vec<_> = nodes.iter().map(|node| node.journal()).collect();
        let opened = join_all(journals.iter().map(|journal| journal.open(&id))).await;
        assert_eq!(opened.iter().filter(|opened| opened.is_ok()).count(), 1, "{round}");
    }
}

#[tokio::test]
async fn a_closed_node_leaves_its_sessions_at_once() {
    let server = Postgres::start();
    let (here, there) = (join(&server.url()).await, join(&server.url()).await);
    let log = open_log(&here.journal(), "s").await;
    log.emit(text_delta("a"));
    here.journal().close().await.unwrap();
    let begun = Instant::now();
    let next = take(&there, "s").await;
    assert!(begun.elapsed() < LEASE / 2, "{:?}", begun.elapsed());
    next.emit(text_delta("b"));
    there.journal().flush().await.unwrap();
    log.emit(text_delta("late"));
    assert_eq!(texts(&there, "s").await, ["a", "b"]);
}

#[tokio::test]
async fn requests_wait_for_a_connection() {
    let server = Postgres::start();
    let node = join(&server.url()).await;
    let journal = node.journal();
    let ids: Vec<SessionId> = (0..300).map(|n| format!("s-{n}").parse().unwrap()).collect();
    let opened = join_all(ids.iter().map(|id| journal.open(id))).await;
    assert!(opened.iter().all(Result::is_ok));
    let connections = "SELECT count(*) <= 10 FROM pg_stat_activity WHERE application_name = 'mainstem'";
    assert_eq!(server.sql(connections), "t");
}

#[tokio::test]
async fn numbers_of_requests_do_not_come_again_after_a_crash() {
    let mut server = Postgres::start();
    let (here, there) = (join(&server.url()).await, join(&server.url()).await);
    let _log = open_log(&here.journal(), "s").await;
    let relay = there.journal().relay().unwrap();
    let id = "s".parse().unwrap();
    let ask = async || _ = timeout(Duration::from_millis(300), relay.ask(&id, b"what".to_vec())).await;
    let last = "SELECT last_value FROM mainstem.relayed_ids";
    ask().await;
    let before: i64 = server.sql(last).parse().unwrap();
    server.stop();
    server.start_again();
    ask().await;
    let after: i64 = server.sql(last).parse().unwrap();
    assert!(after > before, "{before}, {after}");
}

#[tokio::test]
async fn an_executor_is_alive_as_long_as_its_node_whatever_the_clocks_say() {
    let server = Postgres::start();
    let (here, there) = (join(&server.url()).await, join(&server.url()).await);
    let executor = ExecutorId::new("e");
    // By a clock that is far behind.
    let until = mainstem_event::Timestamp::from_micros(1);
    here.tasks().renew(&executor, until).await.unwrap();
    let seen = there.tasks().lease(&executor).await.unwrap().unwrap();
    assert!(seen.as_micros() > 4_000_000_000_000_000, "{seen}");
    here.journal().close().await.unwrap();
    assert_eq!(there.tasks().lease(&executor).await.unwrap(), None);
}

#[tokio::test]
async fn a_cut_run_is_known_until_another_begins_or_it_is_forgotten() {
    let server = Postgres::start();
    for forgets in [false, true] {
        let id: SessionId = format!("s-{forgets}").parse().unwrap();
        let node = join(&server.url()).await;
        let log = open_log(&node.journal(), id.as_str()).await;
        root_sink(&log, "cut").emit(agent_start());
        node.journal().flush().await.unwrap();
        let cut = async |node: &Node| node.journal().session(&id).await.unwrap().unwrap().cut;
        assert_eq!(cut(&node).await, None, "it is not cut while its node has it");
        drop(log);
        node.journal().close().await.unwrap();

        // The next node ends the run, and ends itself.
        let next = join(&server.url()).await;
        let log = take(&next, id.as_str()).await;
        root_sink(&log, "cut").emit(agent_end());
        next.journal().flush().await.unwrap();
        assert_eq!(cut(&next).await.unwrap().as_str(), "cut");
        assert!(!next.journal().abandoned().await.unwrap().contains(&id));
        drop(log);
        next.journal().close().await.unwrap();

        let last = join(&server.url()).await;
        assert!(last.journal().abandoned().await.unwrap().contains(&id));
        let log = take(&last, id.as_str()).await;
        if forgets {
            last.journal().forget_cut(&id).await.unwrap();
        } else {
            // Begun and ended in one transaction.
            emit_run(&log, "another", 1);
            last.journal().flush().await.unwrap();
        }
        assert_eq!(cut(&last).await, None);
        drop(log);
        last.journal().close().await.unwrap();
        assert!(!join(&server.url()).await.journal().abandoned().await.unwrap().contains(&id));
    }
}
