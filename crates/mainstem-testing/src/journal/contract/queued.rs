//! The contract of `Journal`: runs that wait until their session is free.

use std::time::Duration;

use mainstem_journal::{Journal, QueuedRun};

use crate::journal::{emit_run, open_log};

fn queued(id: &str, session: &str, request: &str) -> QueuedRun {
    QueuedRun { id: id.parse().unwrap(), session: session.parse().unwrap(), request: request.to_owned() }
}

pub(super) async fn a_queued_run_is_stored_until_it_is_removed(journal: &dyn Journal) {
    let (session, other) = ("queued".parse().unwrap(), "queued-too".parse().unwrap());
    for name in ["queued", "queued-too"] {
        emit_run(&open_log(journal, name).await, name, 2);
    }
    journal.flush().await.unwrap();
    // In the order in which they are stored, whatever their ids and sessions are.
    let (b, a) = (queued("run-b", "queued", "{\"input\":\"ä\"}"), queued("run-a", "queued", ""));
    let c = queued("run-c", "queued-too", "x");
    let held = open_log(journal, "queued").await;
    for run in [&b, &c, &a] {
        journal.queue_run(run.clone()).await.unwrap();
    }
    drop(held);
    for run in [&a, &b, &c] {
        assert_eq!(journal.queued_run(&run.id).await.unwrap().as_ref(), Some(run));
    }
    assert_eq!(journal.queued_runs(&session).await.unwrap(), [b.clone(), a.clone()]);
    assert_eq!(journal.queued_runs(&other).await.unwrap(), std::slice::from_ref(&c));
    assert_eq!(journal.queued_runs(&"nowhere".parse().unwrap()).await.unwrap(), []);
    assert_eq!(journal.queued_run(&"run-x".parse().unwrap()).await.unwrap(), None);
    // Stored again, for its answer was lost, it keeps its place.
    journal.queue_run(b.clone()).await.unwrap();
    assert_eq!(journal.queued_runs(&session).await.unwrap(), [b.clone(), a.clone()]);
    // A session that no process has open is to be opened for them.
    let mut abandoned = Vec::new();
    for _ in 0..100 {
        // The journal may learn a moment later that a log was dropped.
        abandoned = journal.abandoned().await.unwrap();
        if abandoned.contains(&session) && abandoned.contains(&other) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(abandoned.contains(&session) && abandoned.contains(&other), "{abandoned:?}");

    assert!(journal.unqueue_run(&b.id).await.unwrap());
    assert!(!journal.unqueue_run(&b.id).await.unwrap());
    assert_eq!(journal.queued_run(&b.id).await.unwrap(), None);
    assert_eq!(journal.queued_runs(&session).await.unwrap(), [a]);

    // A later session of the same id has none.
    for name in [&session, &other] {
        assert!(journal.delete(name).await.unwrap());
        assert_eq!(journal.queued_runs(name).await.unwrap(), []);
    }
    assert_eq!(journal.queued_run(&c.id).await.unwrap(), None);
    assert!(journal.abandoned().await.unwrap().is_empty());
}
