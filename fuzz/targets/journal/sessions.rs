//! The row of a session: whatever stands in it, reading and opening return, and the threads behind
//! the journal go on.

use std::sync::LazyLock;

use mainstem::journal::Journal;
use rusqlite::{Connection, types::Value};

use super::File;
use crate::{fuzz, input::Input};

static FILE: LazyLock<File> = LazyLock::new(File::create);

const COLUMNS: [&str; 7] = ["epoch", "first", "last", "runs", "run", "created_at", "updated_at"];

/// What the row holds when nothing is damaged, in the order of the columns.
const INTACT: &str = "1 1 4 1 r 1795341600000000 1795341600000003";

/// Words become the values of the columns, as a number where a word is one.
fn write(beside: &Connection, words: &str) {
    for (column, word) in COLUMNS.iter().zip(words.split(' ')) {
        let number = word.parse().map(Value::Integer);
        let value = number.unwrap_or_else(|_| Value::Text(word.to_owned()));
        beside.execute(&format!("UPDATE sessions SET {column} = ?1 WHERE name = 's'"), [value]).unwrap();
    }
}

fn check(input: &Input) {
    let beside = FILE.beside();
    write(&beside, &input.text());
    let id = "s".parse().unwrap();
    FILE.runtime.block_on(async {
        for summary in FILE.journal.sessions().await.unwrap_or_default() {
            let _ = (summary.events(), summary.created_at.to_string(), summary.updated_at.to_string());
        }
        for from in [0, 1, 4, u64::MAX] {
            let _ = FILE.journal.read(&id, from, 10).await;
        }
        drop(FILE.journal.open(&id).await);
    });
    write(&beside, INTACT);
    let read = FILE.read(1).unwrap_or_else(|error| panic!("the journal ended: {error}"));
    assert!(!read.is_empty());
    FILE.runtime.block_on(FILE.journal.flush()).unwrap_or_else(|error| panic!("the writer ended: {error}"));
}

#[test]
fn journal_sessions() {
    fuzz!("journal_sessions", check);
}
