//! The contract of `TaskStore`.
#![expect(clippy::unwrap_used, reason = "a suite of tests")]

use std::sync::Arc;

use futures_util::future::join_all;
use mainstem_event::{TaskStatus, Timestamp};
use mainstem_message::{Failure, SessionId};
use mainstem_task::{ExecutorId, Expected, TaskChange, TaskError, TaskFilter, TaskRecord, TaskStore};
use serde_json::json;

/// Returns the record of a running task, as a file has it.
pub fn record(id: &str, parent: &str, micros: u64) -> TaskRecord {
    let at = Timestamp::from_micros(micros);
    let record = json!({
        "id": id, "rootSessionId": "root", "parentAgentId": "main", "parentSessionId": parent, "agentKey": "agent:a:1",
        "agentId": "a", "task": "go", "status": "running", "version": 1, "fence": 1, "executor": "here",
        "createdAt": at, "updatedAt": at,
    });
    #[expect(clippy::expect_used, reason = "the record stands above")]
    serde_json::from_value(record).expect("a record")
}

/// Checks the whole contract over an empty store.
///
/// # Panics
/// If the store breaks it.
pub async fn check(store: Arc<dyn TaskStore>) {
    keeps_and_lists(&*store).await;
    changes_only_what_is_expected(&*store).await;
    terminal_is_final(&*store).await;
    changes_at_once_are_all_made(&store).await;
    leases_are_renewed_and_given_up(&*store).await;
    what_is_removed_is_gone(&*store).await;
    those_that_are_resumable_are_listed(&*store).await;
}

/// Those that are not over; whatever their texts say.
async fn those_that_are_resumable_are_listed(store: &dyn TaskStore) {
    let quoted = r#""isResumable":true, "status":"completed""#;
    for (id, is_resumable) in [("far-1", true), ("far-2", true), ("far-3", true), ("near", false)] {
        let mut record = record(id, "far", 1);
        (record.is_resumable, record.task) = (is_resumable, quoted.into());
        store.create(record).await.unwrap();
    }
    assert_eq!(ids(store, TaskFilter::resumable()).await, ["far-1", "far-2", "far-3"]);
    let ends = [
        ("far-1", TaskChange::Complete { result: quoted.into() }),
        ("far-2", TaskChange::Fail { error: Failure::new("error", quoted), partial: None }),
        ("far-3", TaskChange::WaitForConfirm),
    ];
    for (id, change) in ends {
        store.update(&id.parse().unwrap(), Expected::any(), change, at(2)).await.unwrap();
    }
    assert_eq!(ids(store, TaskFilter::resumable()).await, ["far-3"]);
    for (root, expected) in [("root", &["far-3"][..]), ("other", &[])] {
        let mut filter = TaskFilter::resumable();
        filter.root = Some(root.parse().unwrap());
        assert_eq!(ids(store, filter).await, expected);
    }
}

async fn what_is_removed_is_gone(store: &dyn TaskStore) {
    for id in ["gone-1", "gone-2"] {
        store.create(record(id, "leaving", 1)).await.unwrap();
    }
    assert_eq!(store.remove(&"gone-1".parse().unwrap()).await.unwrap().id.as_str(), "gone-1");
    assert_eq!(store.get(&"gone-1".parse().unwrap()).await.unwrap(), None);
    assert_eq!(ids(store, TaskFilter::of_parent("leaving".parse().unwrap())).await, ["gone-2"]);
    let again = store.remove(&"gone-1".parse().unwrap()).await.unwrap_err();
    assert!(matches!(again, TaskError::Unknown { .. }), "{again}");
    // Its id is free.
    store.create(record("gone-1", "leaving", 2)).await.unwrap();
}

fn at(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros)
}

async fn ids(store: &dyn TaskStore, filter: TaskFilter) -> Vec<String> {
    let found = store.list(&filter).await.unwrap();
    found.into_iter().map(|record| record.id.to_string()).collect()
}

async fn keeps_and_lists(store: &dyn TaskStore) {
    assert_eq!(store.get(&"t-0".parse().unwrap()).await.unwrap(), None);
    assert!(ids(store, TaskFilter::all()).await.is_empty());
    for (id, parent, micros) in [("t-2", "root", 20), ("t-1", "root", 10), ("t-3", "sub/a..b", 5)] {
        let record = record(id, parent, micros);
        store.create(record.clone()).await.unwrap();
        assert_eq!(store.get(&record.id).await.unwrap().as_ref(), Some(&record));
        let again = store.create(record).await.unwrap_err();
        assert!(matches!(again, TaskError::Exists { .. }), "{again}");
    }
    assert_eq!(ids(store, TaskFilter::all()).await, ["t-3", "t-1", "t-2"], "oldest first");
    assert_eq!(ids(store, TaskFilter::of_parent("root".parse().unwrap())).await, ["t-1", "t-2"]);
    assert_eq!(
        ids(store, TaskFilter::of_parent(SessionId::parse_scoped("sub/a..b").unwrap())).await,
        ["t-3"]
    );
    assert_eq!(ids(store, TaskFilter::of_root("root".parse().unwrap())).await.len(), 3);
    assert!(ids(store, TaskFilter::of_root("other".parse().unwrap())).await.is_empty());
    assert!(ids(store, TaskFilter::all().with_status(TaskStatus::Failed)).await.is_empty());
}

async fn changes_only_what_is_expected(store: &dyn TaskStore) {
    let id = "t-1".parse().unwrap();
    let wait = || TaskChange::WaitForConfirm;
    let unknown = store.update(&"t-0".parse().unwrap(), Expected::any(), wait(), at(30)).await.unwrap_err();
    assert!(matches!(unknown, TaskError::Unknown { .. }), "{unknown}");
    let stale = store.update(&id, Expected::version(7), wait(), at(30)).await.unwrap_err();
    assert!(matches!(stale, TaskError::Conflict { version: 1, .. }), "{stale}");
    let changed = store.update(&id, Expected::version(1), wait(), at(30)).await.unwrap();
    assert_eq!((changed.version, changed.status), (2, TaskStatus::WaitingConfirm));
    assert_eq!((changed.created_at, changed.updated_at), (at(10), at(30)));
    assert_eq!(store.get(&id).await.unwrap(), Some(changed));
    // An executor that was overtaken can't change the record.
    let executor = ExecutorId::new("there");
    let claimed =
        store.update(&id, Expected::version(2), TaskChange::Claim { executor }, at(40)).await.unwrap();
    assert_eq!(claimed.fence, 2);
    let fenced = store.update(&id, Expected::fence(1), TaskChange::Run, at(50)).await.unwrap_err();
    assert!(matches!(fenced, TaskError::Fenced { .. }), "{fenced}");
    store.update(&id, Expected::fence(2), TaskChange::Run, at(50)).await.unwrap();
}

async fn terminal_is_final(store: &dyn TaskStore) {
    let id = "t-1".parse().unwrap();
    let wish = || TaskChange::RequestCancel { by: "me".into() };
    let wanted = store.update(&id, Expected::any(), wish(), at(60)).await.unwrap();
    assert_eq!(
        (wanted.cancel.map(|cancel| cancel.by), wanted.status),
        (Some("me".into()), TaskStatus::Running)
    );
    let failed = TaskChange::Fail { error: Failure::new("error", "no"), partial: None };
    let failed = store.update(&id, Expected::any(), failed, at(70)).await.unwrap();
    let done = TaskChange::Complete { result: "late".into() };
    let refused = store.update(&id, Expected::any(), done, at(80)).await.unwrap_err();
    assert!(matches!(refused, TaskError::Illegal(_)), "{refused}");
    assert_eq!(store.update(&id, Expected::any(), wish(), at(80)).await.unwrap(), failed);
    let told = store.update(&id, Expected::any(), TaskChange::Deliver, at(90)).await.unwrap();
    assert_eq!(told.delivered_at, Some(at(90)));
    assert_eq!(store.update(&id, Expected::any(), TaskChange::Deliver, at(99)).await.unwrap(), told);
}

async fn changes_at_once_are_all_made(store: &Arc<dyn TaskStore>) {
    let create = |n: u64| {
        let store = store.clone();
        async move { store.create(record(&format!("m-{n:02}"), "many", n)).await.unwrap() }
    };
    join_all((0..40).map(create)).await;
    // Of updates that expect the same version, one succeeds.
    let id = "m-00".parse().unwrap();
    let race = |n: u64| store.update(&id, Expected::version(1), TaskChange::WaitForConfirm, at(n));
    let won = join_all((0..20).map(race)).await.into_iter().filter(Result::is_ok).count();
    assert_eq!(won, 1);
    let complete = |n: u64| {
        let (store, id) = (store.clone(), format!("m-{n:02}").parse().unwrap());
        let change = TaskChange::Complete { result: format!("result {n}") };
        async move { store.update(&id, Expected::any(), change, at(100)).await.unwrap() }
    };
    join_all((0..40).map(complete)).await;
    let all = store.list(&TaskFilter::of_parent("many".parse().unwrap())).await.unwrap();
    let results: Vec<_> = all.iter().filter_map(|record| record.result.clone()).collect();
    assert_eq!(results, (0..40).map(|n| format!("result {n}")).collect::<Vec<_>>());
}

async fn leases_are_renewed_and_given_up(store: &dyn TaskStore) {
    let executor = ExecutorId::new("host/7: ä");
    assert_eq!(store.lease(&executor).await.unwrap(), None);
    store.release(&executor).await.unwrap();
    for until in [at(1_000_000), at(2_000_001)] {
        store.renew(&executor, until).await.unwrap();
        assert_eq!(store.lease(&executor).await.unwrap(), Some(until));
    }
    store.release(&executor).await.unwrap();
    assert_eq!(store.lease(&executor).await.unwrap(), None);
}
