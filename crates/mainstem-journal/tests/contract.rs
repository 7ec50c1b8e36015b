//! The contract, over each journal.

use std::sync::Arc;

use mainstem_event::Timestamp;
use mainstem_journal::{Claim, Claimed, Journal, MemoryJournal, Scoped};
use mainstem_testing::journal::{check, check_data, check_jobs, check_pages, open_log, text_delta};

#[tokio::test]
async fn the_journal_in_memory_keeps_the_contract() {
    check(Arc::new(MemoryJournal::new())).await;
}

#[tokio::test]
async fn a_journal_chosen_at_run_time_keeps_the_contract() {
    let chosen: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    check(Arc::new(chosen)).await;
}

#[tokio::test]
async fn a_part_of_a_journal_keeps_the_contract_and_to_itself() {
    let whole: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let other = Scoped::new(whole.clone(), "acme2".parse().unwrap());
    open_log(&other, "a").await.emit(text_delta("of another"));
    check(Arc::new(Scoped::new(whole.clone(), "acme".parse().unwrap()))).await;
    let names: Vec<_> = other.sessions().await.unwrap().into_iter().map(|one| one.id.to_string()).collect();
    assert_eq!(names, ["a"]);
    assert!(whole.sessions().await.unwrap().iter().any(|one| one.id.as_str() == "acme2/a"));
}

#[tokio::test]
async fn a_key_of_the_whole_journal_is_not_one_of_a_part() {
    let whole: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let acme = Scoped::new(whole.clone(), "acme".parse().unwrap());
    let claim = |key: &str| Claim {
        key: key.to_owned(),
        digest: "d".to_owned(),
        session: "s".parse().unwrap(),
        run: "run-1".parse().unwrap(),
        at: Timestamp::from_micros(5),
    };
    assert_eq!(acme.claim(claim("k")).await.unwrap(), Claimed::New);
    assert_eq!(whole.claim(claim("acme/k")).await.unwrap(), Claimed::New);
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn the_journal_in_a_file_keeps_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    check(Arc::new(mainstem_journal::SqliteJournal::open(directory.path().join("new/journal.db")).unwrap()))
        .await;
}

#[tokio::test]
async fn pages_keep_the_contract() {
    check_pages(&(Arc::new(MemoryJournal::new()) as Arc<dyn Journal>)).await;
}

#[tokio::test]
async fn data_of_a_tenant_leaves_room_for_others() {
    check_data(&MemoryJournal::new()).await;
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn data_of_a_tenant_leaves_room_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    check_data(&mainstem_journal::SqliteJournal::open(path).unwrap()).await;
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn pages_of_a_file_keep_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    let journal = mainstem_journal::SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    check_pages(&(Arc::new(journal) as Arc<dyn Journal>)).await;
}

#[tokio::test]
async fn jobs_keep_the_contract() {
    check_jobs(&(Arc::new(MemoryJournal::new()) as Arc<dyn Journal>)).await;
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn jobs_in_a_file_keep_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    let journal = mainstem_journal::SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    check_jobs(&(Arc::new(journal) as Arc<dyn Journal>)).await;
}
