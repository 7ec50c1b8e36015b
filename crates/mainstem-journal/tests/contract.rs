//! The contract, over each journal.

use std::sync::Arc;

use mainstem_journal::MemoryJournal;
use mainstem_testing::journal::check;

#[tokio::test]
async fn the_journal_in_memory_keeps_the_contract() {
    check(Arc::new(MemoryJournal::new())).await;
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn the_journal_in_a_file_keeps_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    check(Arc::new(mainstem_journal::SqliteJournal::open(directory.path().join("new/journal.db")).unwrap()))
        .await;
}
