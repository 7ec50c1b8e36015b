//! Rows of a journal's file that something else wrote: a damaged row costs that row, and is an
//! error, never a panic.

mod sessions;

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use mainstem::{
    event::AgentEvent,
    journal::{Journal, JournalError, SqliteJournal},
};
use rusqlite::{Connection, params};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::{fuzz, input::Input};

/// The session's rows: 1 and 2 are intact, 3 is the input, 4 is intact again.
const ROWS: &str = include_str!("../../crates/mainstem-journal/tests/format-1.sql");

/// The row that is the input.
const DAMAGED: u64 = 3;

/// A journal that is open, and a connection beside it.
struct File {
    journal: SqliteJournal,
    beside: Mutex<Connection>,
    runtime: Runtime,
    _directory: TempDir,
}

static FILE: LazyLock<File> = LazyLock::new(File::create);

impl File {
    fn create() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.db");
        let beside = Connection::open(&path).unwrap();
        beside.execute_batch(ROWS).unwrap();
        // What is written is read back at once; nothing of it needs to survive.
        beside.execute_batch("PRAGMA synchronous = OFF").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let journal = SqliteJournal::open(&path).unwrap();
        Self { journal, beside: Mutex::new(beside), runtime, _directory: directory }
    }

    /// The connection, also after an input has failed: a smaller one is then looked for.
    fn beside(&self) -> MutexGuard<'_, Connection> {
        self.beside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, from: u64) -> Result<Vec<AgentEvent>, JournalError> {
        self.runtime.block_on(self.journal.read(&"s".parse().unwrap(), from, 10))
    }
}

/// Puts the bytes into the row, as a BLOB and as TEXT of whatever encoding.
fn check(input: &Input) {
    let beside = FILE.beside();
    for column in ["?1", "CAST(?1 AS TEXT)"] {
        let update = format!("UPDATE events SET event = {column} WHERE seq = ?2");
        beside.execute(&update, params![input.bytes, DAMAGED as i64]).unwrap();
        let valid =
            serde_json::from_slice::<AgentEvent>(&input.bytes).ok().filter(|event| event.seq == DAMAGED);
        let seqs =
            |from| FILE.read(from).map(|events| events.iter().map(|event| event.seq).collect::<Vec<_>>());
        match (valid, FILE.read(DAMAGED)) {
            (Some(event), Ok(read)) => assert_eq!(read[0], event),
            (None, Err(JournalError::Damaged { seq: DAMAGED, .. })) => {}
            (valid, read) => panic!("{column}: read {read:?}, expected {valid:?}"),
        }
        assert!(seqs(1).unwrap().starts_with(&[1, 2]), "what comes before is read");
        assert_eq!(seqs(DAMAGED + 1).unwrap(), [DAMAGED + 1], "what follows is read");
    }
}

#[test]
fn journal_rows() {
    fuzz!("journal", check);
}
