//! The contract over every store, and what is specific to files.
#![expect(clippy::unwrap_used, reason = "tests and what they share")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use mainstem_event::Timestamp;
use mainstem_message::TaskId;
use mainstem_task::{
    ExecutorId, Expected, FileTaskStore, MemoryTaskStore, ScopedTaskStore, TaskChange, TaskError, TaskFilter,
    TaskStore,
};
use mainstem_testing::task_store::{check, record};

#[tokio::test]
async fn memory() {
    check(Arc::new(MemoryTaskStore::new())).await;
}

#[tokio::test]
async fn file() {
    let workspace = tempfile::tempdir().unwrap();
    check(Arc::new(FileTaskStore::new(workspace.path()))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn file_on_threads() {
    let workspace = tempfile::tempdir().unwrap();
    check(Arc::new(FileTaskStore::new(workspace.path()))).await;
}

/// The contract over two parts of a store, one after the other: the second finds an empty store,
/// and leaves the first as it was.
async fn check_parts(whole: Arc<dyn TaskStore>) {
    let part = |name: &str| {
        Arc::new(ScopedTaskStore::new(whole.clone(), name.parse().unwrap())) as Arc<dyn TaskStore>
    };
    let (first, second) = (part("acme"), part("acme-2"));
    check(first.clone()).await;
    let of_first = first.list(&TaskFilter::all()).await.unwrap();
    check(second.clone()).await;
    assert_eq!(first.list(&TaskFilter::all()).await.unwrap(), of_first);
    assert!(!of_first.is_empty());
    let all = whole.list(&TaskFilter::all()).await.unwrap();
    assert_eq!(all.len(), 2 * of_first.len());
    assert!(all.iter().all(|record| record.id.as_str().starts_with("acme")));
    assert!(part("acm").list(&TaskFilter::all()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_part_of_memory() {
    check_parts(Arc::new(MemoryTaskStore::new())).await;
}

#[tokio::test]
async fn a_part_of_files() {
    let workspace = tempfile::tempdir().unwrap();
    check_parts(Arc::new(FileTaskStore::new(workspace.path()))).await;
}

#[tokio::test]
async fn a_part_neither_sees_nor_changes_what_is_anothers() {
    let whole: Arc<dyn TaskStore> = Arc::new(MemoryTaskStore::new());
    let part = |name: &str| ScopedTaskStore::new(whole.clone(), name.parse().unwrap());
    let (acme, globex) = (part("acme"), part("globex"));
    let (at, here) = (Timestamp::from_micros(9), ExecutorId::new("here"));
    acme.create(record("t", "s", 1)).await.unwrap();
    acme.renew(&here, at).await.unwrap();
    // By its own id, by the id in the store, and by a path from one part to the other.
    for id in ["/acme/t", "../acme/t"] {
        assert!(TaskId::parse_scoped(id).is_err(), "{id}");
    }
    for id in ["t", "acme/t"] {
        let named = TaskId::parse_scoped(id).unwrap();
        assert_eq!(globex.get(&named).await.unwrap(), None, "{id}");
        let change = TaskChange::RequestCancel { by: "globex".into() };
        let errors = [
            globex.update(&named, Expected::any(), change, at).await.unwrap_err(),
            globex.remove(&named).await.unwrap_err(),
        ];
        let is_unknown = |error: &TaskError| matches!(error, TaskError::Unknown { id: of } if *of == named);
        assert!(errors.iter().all(is_unknown), "{errors:?}");
    }
    globex.release(&here).await.unwrap();
    assert_eq!(acme.lease(&here).await.unwrap(), Some(at));
    // The same id in both parts, each with a record of its own.
    globex.create(record("t", "s", 2)).await.unwrap();
    assert_eq!(acme.get(&"t".parse().unwrap()).await.unwrap(), Some(record("t", "s", 1)));
    assert_eq!(
        acme.list(&TaskFilter::of_root("root".parse().unwrap())).await.unwrap(),
        [record("t", "s", 1)]
    );
    let exists = acme.create(record("t", "s", 3)).await.unwrap_err();
    assert!(matches!(&exists, TaskError::Exists { id } if id.as_str() == "t"), "{exists}");
}

fn tasks_of(workspace: &Path, agent: &str) -> PathBuf {
    workspace.join("agents").join(agent).join("tasks")
}

#[tokio::test]
async fn the_file_is_where_people_look_for_it_and_readable() {
    let workspace = tempfile::tempdir().unwrap();
    FileTaskStore::new(workspace.path()).create(record("t", "s-1", 1)).await.unwrap();
    let text = fs::read_to_string(tasks_of(workspace.path(), "main").join("s-1.json")).unwrap();
    let object: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(object["t"]["status"], "running");
    assert_eq!(object["t"]["createdAt"], "1970-01-01T00:00:00.000001Z");
}

#[tokio::test]
async fn ids_from_outside_stay_inside() {
    let workspace = tempfile::tempdir().unwrap();
    let mut hostile = record("t", "etc/x", 1);
    hostile.parent_agent_id = "../..".into();
    let store = FileTaskStore::new(workspace.path().join("ws"));
    store.create(hostile.clone()).await.unwrap();
    assert_eq!(store.list(&TaskFilter::all()).await.unwrap(), [hostile]);
    let outside: Vec<_> =
        fs::read_dir(workspace.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(outside, ["ws"]);
}

#[tokio::test]
async fn two_processes_see_each_other() {
    let workspace = tempfile::tempdir().unwrap();
    let [one, two] = [(); 2].map(|()| FileTaskStore::new(workspace.path()));
    one.create(record("t", "s", 1)).await.unwrap();
    assert_eq!(two.get(&"t".parse().unwrap()).await.unwrap(), one.get(&"t".parse().unwrap()).await.unwrap());
    let wish = TaskChange::RequestCancel { by: "two".into() };
    two.update(&"t".parse().unwrap(), Expected::version(1), wish, Timestamp::from_micros(2)).await.unwrap();
    let seen = one.get(&"t".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(seen.cancel.map(|cancel| cancel.by).as_deref(), Some("two"));
    // A hundred changes from both sides, all recorded.
    let create = async |store: &FileTaskStore, name: &str| {
        for n in 0..50 {
            store.create(record(&format!("{name}-{n}"), "s", 3)).await.unwrap();
        }
    };
    tokio::join!(create(&one, "one"), create(&two, "two"));
    assert_eq!(one.list(&TaskFilter::all()).await.unwrap().len(), 101);
    assert_eq!(two.list(&TaskFilter::all()).await.unwrap().len(), 101);
}

#[tokio::test]
async fn a_lease_ends_with_the_process_of_its_executor() {
    let workspace = tempfile::tempdir().unwrap();
    let [one, two] = [(); 2].map(|()| FileTaskStore::new(workspace.path()));
    let (executor, until) = (ExecutorId::new("host/7"), Timestamp::from_micros(4_102_444_800_000_000));
    one.renew(&executor, until).await.unwrap();
    for _ in 0..2 {
        assert_eq!(two.lease(&executor).await.unwrap(), Some(until), "looking does not take the lock");
    }
    // As the system closes the files of a process that is killed.
    drop(one);
    assert_eq!(two.lease(&executor).await.unwrap(), None);
    // Concurrent readers do not mistake one another for the executor.
    let looks = (0..400).map(|_| two.lease(&executor));
    let found: Vec<_> = futures_util::future::join_all(looks).await;
    assert!(found.into_iter().all(|found| found.unwrap().is_none()));
    // The locks of another machine are not visible on every file system.
    let lock = workspace.path().join("agents/.executors/host%2f7+lock");
    let here = fs::read(&lock).unwrap();
    fs::write(&lock, "another machine").unwrap();
    assert_eq!(two.lease(&executor).await.unwrap(), Some(until));
    fs::write(&lock, here).unwrap();
    assert_eq!(two.lease(&executor).await.unwrap(), None);
    // Without a lock file, as an earlier version leaves it, the lease alone decides.
    let files = workspace.path().join("agents/.executors");
    fs::remove_file(files.join("host%2f7+lock")).unwrap();
    assert_eq!(two.lease(&executor).await.unwrap(), Some(until));
    two.renew(&executor, until).await.unwrap();
    two.release(&executor).await.unwrap();
    assert_eq!(fs::read_dir(files).unwrap().count(), 0, "a released executor leaves no files");
}

#[tokio::test]
async fn a_new_executor_removes_the_files_of_killed_ones() {
    let workspace = tempfile::tempdir().unwrap();
    let stores = [(); 3].map(|()| FileTaskStore::new(workspace.path()));
    let [killed, living, _] = &stores;
    let at = |seconds: u64| Timestamp::from_micros(4_102_444_800_000_000 + seconds * 1_000_000);
    killed.renew(&ExecutorId::new("killed"), at(0)).await.unwrap();
    living.renew(&ExecutorId::new("living"), at(0)).await.unwrap();
    let files = workspace.path().join("agents/.executors");
    // Leases of another machine, whose locks prove nothing, and one of an earlier version.
    for (name, lease) in [("away", 1), ("away-and-old", 0)] {
        fs::write(files.join(name), at(lease).to_string()).unwrap();
        fs::write(files.join(format!("{name}+lock")), "another machine").unwrap();
    }
    fs::write(files.join("unlocked-and-old"), at(0).to_string()).unwrap();
    let names = || {
        let mut names: Vec<_> = fs::read_dir(&files).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names().len(), 9);
    let [killed, _living, new] = stores;
    drop(killed);
    new.renew(&ExecutorId::new("new"), at(24 * 60 * 60 + 1)).await.unwrap();
    assert_eq!(names(), ["away", "away+lock", "living", "living+lock", "new", "new+lock"]);
}

#[tokio::test]
async fn a_file_that_cant_be_parsed_is_renamed_and_reported() {
    let workspace = tempfile::tempdir().unwrap();
    let tasks = tasks_of(workspace.path(), "main");
    fs::create_dir_all(&tasks).unwrap();
    let file = tasks.join("s.json");
    for (n, broken) in
        [r#"{"t": {"id": "t""#, r#"{"t": {"id": 7}}"#, r#"{"t t": {}}"#, "\u{0}\u{0}"].into_iter().enumerate()
    {
        fs::write(&file, broken).unwrap();
        let store = FileTaskStore::new(workspace.path());
        let error = store.list(&TaskFilter::all()).await.unwrap_err();
        let renamed = tasks.join(format!("s.json.corrupt-{}", n + 1));
        let TaskError::Corrupt { renamed_to, problem, .. } = &error else { panic!("{error}") };
        assert_eq!(*renamed_to, renamed);
        assert!(problem.contains("line 1 column"), "{problem}");
        assert_eq!(fs::read_to_string(&renamed).unwrap(), broken);
        assert!(store.list(&TaskFilter::all()).await.unwrap().is_empty(), "then it goes on");
    }
    // Writes go on at once.
    fs::write(&file, "nonsense").unwrap();
    let store = FileTaskStore::new(workspace.path());
    store.create(record("new", "s", 1)).await.unwrap();
    assert_eq!(fs::read_to_string(tasks.join("s.json.corrupt-5")).unwrap(), "nonsense");
    assert_eq!(store.list(&TaskFilter::all()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_record_that_cant_be_stored_is_an_error() {
    let workspace = tempfile::tempdir().unwrap();
    fs::write(workspace.path().join("agents"), "a file where a directory should be").unwrap();
    let store = FileTaskStore::new(workspace.path());
    let error = store.create(record("t", "s", 1)).await.unwrap_err();
    assert!(error.to_string().starts_with("can't lock "), "{error}");
    // Callers other than the operator get the error without the path.
    let told = error.without_paths();
    assert!(told.starts_with("can't lock the records of tasks: "), "{told}");
    assert!(!told.contains(workspace.path().to_str().unwrap()), "{told}");
    assert!(store.list(&TaskFilter::all()).await.unwrap().is_empty());
}
