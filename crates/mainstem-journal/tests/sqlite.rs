//! The file: who may open it, how large it may be, damage, and what survives.
#![expect(clippy::unwrap_used, reason = "tests and what they share")]

use std::{
    io::{BufRead, BufReader, Seek, SeekFrom, Write},
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    task::{Wake, Waker},
    thread,
    time::{Duration, Instant},
};

use futures_util::{
    StreamExt,
    future::{join_all, poll_immediate},
};
use mainstem_event::{
    AgentEvent, EventKind, LogOptions, Outcome, Record, SessionLog, SystemClock, Timestamp,
};
use mainstem_journal::{
    Checkpoint, Claim, Job, Journal, JournalError, MemoryJournal, Retention, SqliteJournal, Take,
};
use mainstem_message::SessionId;
use mainstem_testing::journal::{
    agent_end, agent_start, emit_run, open_log, read_all, root_sink, text_delta,
};
use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::TempDir;

fn place() -> (TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    (directory, path)
}

fn seqs(events: &[AgentEvent]) -> Vec<u64> {
    events.iter().map(|event| event.seq).collect()
}

/// Returns a journal with a session `s` of so many runs of ten events, on the disk.
async fn written(path: &Path, runs: usize) -> Vec<AgentEvent> {
    let journal = SqliteJournal::open(path).unwrap();
    let log = open_log(&journal, "s").await;
    (0..runs).for_each(|n| emit_run(&log, &n.to_string(), 8));
    journal.close().await.unwrap();
    read_all(&journal, "s").await
}

#[tokio::test]
async fn dropping_a_journal_writes_what_was_appended() {
    let (_directory, path) = place();
    let journal = SqliteJournal::open(&path).unwrap();
    let log = open_log(&journal, "s").await;
    drop(journal);
    (0..3000).for_each(|n| _ = log.emit(text_delta(n.to_string())));
    drop(log);
    // The writer may have been waking the log: then it writes the rest on its own.
    let reader = SqliteJournal::open(&path).unwrap();
    let started = Instant::now();
    while read_all(&reader, "s").await.len() < 3000 && started.elapsed() < Duration::from_secs(10) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(read_all(&reader, "s").await.len(), 3000);
    drop(reader);
    #[cfg(unix)]
    for file in ["journal.db", "journal.db-wal"] {
        let Ok(about) = std::fs::metadata(path.with_file_name(file)) else { continue };
        let mode = std::os::unix::fs::PermissionsExt::mode(&about.permissions());
        assert_eq!(mode & 0o077, 0, "{file} is for its owner alone");
    }
}

#[tokio::test]
async fn events_are_committed_within_50_ms_without_being_asked() {
    let (_directory, path) = place();
    let journal = SqliteJournal::open(&path).unwrap();
    let log = open_log(&journal, "s").await;
    let begun = Instant::now();
    log.emit(text_delta("x"));
    while log.committed() == Some(0) {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(
        begun.elapsed() < Duration::from_millis(500),
        "{:?}, and 50 ms on a quiet machine",
        begun.elapsed()
    );
}

#[tokio::test]
async fn two_processes_have_the_file_and_one_writes_a_session() {
    let (_directory, path) = place();
    let [here, there] = [(); 2].map(|()| SqliteJournal::open(&path).unwrap());
    let log_here = open_log(&here, "s").await;
    let busy = there.open(&"s".parse().unwrap()).await.err().unwrap();
    assert!(matches!(busy, JournalError::Busy { .. }), "{busy}");
    let log_there = open_log(&there, "other").await;
    for n in 0..20 {
        emit_run(&log_here, &n.to_string(), 5);
        emit_run(&log_there, &n.to_string(), 5);
    }
    here.flush().await.unwrap();
    there.flush().await.unwrap();
    assert_eq!(read_all(&there, "s").await, read_all(&here, "s").await);
    assert_eq!(read_all(&here, "other").await.len(), 140);
    drop(log_here);
    here.flush().await.unwrap();
    assert_eq!(open_log(&there, "s").await.last_seq(), 140, "now it is free");
}

#[tokio::test]
async fn a_writer_that_was_overtaken_fails_and_writes_nothing() {
    let (_directory, path) = place();
    let [here, there] = [(); 2].map(|()| SqliteJournal::open(&path).unwrap());
    let old = open_log(&here, "s").await;
    let mut reader = old.attach();
    emit_run(&old, "1", 1);
    here.flush().await.unwrap();
    // As on a file system without locks.
    std::fs::remove_dir_all(path.with_file_name("journal.db.locks")).unwrap();
    let new = open_log(&there, "s").await;
    emit_run(&old, "2", 1);
    emit_run(&new, "3", 1);
    let ends = reader.by_ref().take(6).filter(|event| std::future::ready(event.is_run_end()));
    let outcomes: Vec<_> = ends.map(|event| event.to_string()).collect().await;
    assert!(outcomes[1].contains("taken over"), "{outcomes:?}");
    there.flush().await.unwrap();
    let runs: Vec<_> = read_all(&there, "s")
        .await
        .iter()
        .filter_map(|event| event.run_id().map(ToString::to_string))
        .collect();
    assert_eq!(runs, ["1", "1", "1", "3", "3", "3"]);
}

#[tokio::test]
async fn a_full_disk_fails_the_record_and_keeps_what_was_acknowledged() {
    let (_directory, path) = place();
    let journal = SqliteJournal::open_bounded(&path, 200_000).unwrap();
    let log = open_log(&journal, "s").await;
    let mut reader = log.attach();
    let mut shown = 0;
    for n in 0..1000 {
        emit_run(&log, &n.to_string(), 20);
        while let Some(event) = reader.next().await {
            let EventKind::AgentEnd { outcome, .. } = &event.kind else { continue };
            if *outcome == Outcome::Success {
                shown = event.seq;
            }
            break;
        }
        if log.failure().is_some() {
            break;
        }
    }
    let why = log.failure().unwrap().clone();
    assert!(why.contains("journal.db") && why.contains("full"), "{why}");
    let kept = read_all(&journal, "s").await;
    assert!(shown > 22 && kept.len() as u64 >= shown, "{} of {shown}", kept.len());
    assert_eq!(seqs(&kept), (1..=kept.len() as u64).collect::<Vec<_>>());
    assert!(poll_immediate(root_sink(&log, "x").settle()).await.is_some(), "it is not awaited");
    drop((log, reader));
    drop(journal);
    let after = SqliteJournal::open(&path).unwrap();
    let log = open_log(&after, "s").await;
    assert_eq!(log.last_seq(), kept.len() as u64, "with room again, it goes on");
}

#[tokio::test]
async fn a_session_that_is_in_trouble_does_not_fail_the_others() {
    let (_directory, path) = place();
    let journal = SqliteJournal::open(&path).unwrap();
    let (good, bad) = (open_log(&journal, "good").await, open_log(&journal, "bad").await);
    let sql = "CREATE TRIGGER no BEFORE INSERT ON events WHEN new.event LIKE '%poison%' BEGIN SELECT raise(ABORT, 'poisoned'); END";
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    (0..10).for_each(|_| _ = (good.emit(text_delta("fine")), bad.emit(text_delta("poison"))));
    emit_run(&good, "1", 1);
    journal.flush().await.unwrap();
    assert_eq!((good.failure(), good.committed()), (None, Some(13)));
    assert!(bad.failure().unwrap().contains("poisoned"));
}

#[tokio::test]
async fn data_has_no_room_in_a_full_file() {
    let (_directory, path) = place();
    let journal = SqliteJournal::open_bounded(&path, 1 << 20).unwrap();
    emit_run(&open_log(&journal, "s").await, "s", 1);
    journal.flush().await.unwrap();
    let (session, id) = ("s".parse().unwrap(), "a".repeat(64).parse().unwrap());
    let full = journal.store_data(&session, &id, vec![1; 2 << 20].into()).await.unwrap_err();
    assert!(full.to_string().contains("full"), "{full}");
    assert_eq!(journal.data_size(&session, &id).await.unwrap(), None);
    emit_run(&open_log(&journal, "s").await, "s", 1);
    journal.flush().await.unwrap();
    assert!(journal.store_data(&session, &id, vec![1; 1 << 10].into()).await.unwrap());
}

#[tokio::test]
async fn data_waits_a_day_for_its_session_and_changes_the_format() {
    let (_directory, path) = place();
    written(&path, 1).await;
    let format = || -> i64 {
        let connection = Connection::open(&path).unwrap();
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
    };
    let journal = SqliteJournal::open(&path).unwrap();
    assert_eq!(format(), 1, "earlier programs read it");
    let id = "a".repeat(64).parse().unwrap();
    let store = async |session: &str| {
        assert!(journal.store_data(&session.parse().unwrap(), &id, b"x".to_vec().into()).await.unwrap());
    };
    let stored =
        async |session: &str| journal.data_size(&session.parse().unwrap(), &id).await.unwrap().is_some();
    for session in ["begun", "later", "never"] {
        if session == "begun" {
            emit_run(&open_log(&journal, session).await, session, 1);
            journal.flush().await.unwrap();
        }
        store(session).await;
    }
    assert_eq!(format(), 2);
    emit_run(&open_log(&journal, "later").await, "later", 1);
    journal.flush().await.unwrap();
    let old = "UPDATE data SET waits_since = waits_since - 90000000000";
    Connection::open(&path).unwrap().execute(old, []).unwrap();
    store("another").await;
    assert!(stored("begun").await && stored("later").await && stored("another").await);
    assert!(!stored("never").await);
}

#[tokio::test]
async fn a_newer_format_and_other_files_are_refused_and_left_alone() {
    let (directory, path) = place();
    written(&path, 1).await;
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA user_version = 7; UPDATE about SET value = 'mainstem 9.9'").unwrap();
    let error = SqliteJournal::open(&path).unwrap_err();
    assert!(matches!(error, JournalError::Newer { format: 7, known: 2, .. }), "{error}");
    assert!(error.to_string().contains("written by mainstem 9.9 in format 7"), "{error}");
    let foreign = directory.path().join("other.db");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    let before = std::fs::read(&foreign).unwrap();
    let error = SqliteJournal::open(&foreign).unwrap_err();
    assert!(matches!(error, JournalError::Foreign { .. }), "{error}");
    assert_eq!(std::fs::read(&foreign).unwrap(), before);
    let text = directory.path().join("notes.md");
    std::fs::write(&text, "# Notes\n".repeat(1000)).unwrap();
    let error = SqliteJournal::open(&text).unwrap_err();
    assert!(error.to_string().contains("notes.md: file is not a database"), "{error}");
    assert_eq!(std::fs::read_to_string(&text).unwrap(), "# Notes\n".repeat(1000));
}

/// A file of the first version, as SQL: every later version must read it.
#[cfg(unix)]
#[tokio::test]
async fn a_file_that_can_not_be_written_is_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    // The name has what has a meaning in a URI.
    let directory = folder.path().join("50% of a?b#c");
    std::fs::create_dir(&directory).unwrap();
    let path = directory.join("journal.db");
    let expected = written(&path, 3).await;
    let modes = |file: u32, directory_mode: u32| {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(file)).unwrap();
        std::fs::set_permissions(&directory, PermissionsExt::from_mode(directory_mode)).unwrap();
    };
    modes(0o400, 0o500);
    let journal = SqliteJournal::open_to_read(&path).unwrap();
    assert_eq!(read_all(&journal, "s").await, expected);
    let id: SessionId = "s".parse().unwrap();
    assert_eq!((journal.sessions().await.unwrap().len(), journal.is_open(&id).await.unwrap()), (1, false));
    let error = journal.open(&id).await.map(drop).unwrap_err();
    assert!(error.to_string().contains("readonly") || error.to_string().contains("lock"), "{error}");
    let error = journal.delete(&id).await.unwrap_err();
    assert!(matches!(error, JournalError::Store { .. }), "{error}");
    journal.close().await.unwrap();
    modes(0o600, 0o700);
    assert_eq!(written(&directory.join("other.db"), 1).await.len(), 10);

    // What another process writes meanwhile is read.
    let writing = SqliteJournal::open(&path).unwrap();
    let log = open_log(&writing, "s").await;
    emit_run(&log, "more", 8);
    writing.flush().await.unwrap();
    let reading = SqliteJournal::open_to_read(&path).unwrap();
    assert_eq!(read_all(&reading, "s").await.len(), expected.len() + 10);
    assert!(reading.is_open(&id).await.unwrap());
    emit_run(&log, "and-more", 8);
    writing.flush().await.unwrap();
    assert_eq!(read_all(&reading, "s").await.len(), expected.len() + 20);

    assert!(matches!(
        SqliteJournal::open_to_read(folder.path().join("none.db")),
        Err(JournalError::Store { .. })
    ));
    let older = folder.path().join("older.db");
    written(&older, 1).await;
    Connection::open(&older).unwrap().execute_batch("DROP TABLE jobs").unwrap();
    assert!(matches!(SqliteJournal::open_to_read(&older), Err(JournalError::Older { .. })));

    // What only makes seeks faster may be missing.
    let slower = folder.path().join("slower.db");
    written(&slower, 1).await;
    Connection::open(&slower).unwrap().execute_batch("DROP TABLE moments").unwrap();
    let reading = SqliteJournal::open_to_read(&slower).unwrap();
    let session = reading.sessions().await.unwrap().remove(0).id;
    assert_eq!(reading.moment(&session, 9).await.unwrap(), None);
    reading.close().await.unwrap();
    let writing = SqliteJournal::open(&slower).unwrap();
    let moment = Checkpoint { seq: 1, state: "one".to_owned() };
    writing.store_moment(&session, moment.clone()).await.unwrap();
    assert_eq!(writing.moment(&session, 9).await.unwrap(), Some(moment));
    // A program before the table drops events, and leaves the states that have them.
    writing.close().await.unwrap();
    Connection::open(&slower).unwrap().execute_batch("UPDATE sessions SET first = 2").unwrap();
    assert_eq!(SqliteJournal::open(&slower).unwrap().moment(&session, 9).await.unwrap(), None);
}

#[tokio::test]
async fn files_of_the_first_format_are_read() {
    let (_directory, path) = place();
    Connection::open(&path).unwrap().execute_batch(include_str!("format-1.sql")).unwrap();
    let journal = SqliteJournal::open(&path).unwrap();
    let session = journal.session(&"s".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!((session.last, session.runs, session.unfinished), (4, 1, Some("r".parse().unwrap())));
    let run = journal.run(&"r".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!((run.session.as_str(), run.first), ("s", 1), "what later programs look for is found");
    let events = read_all(&journal, "s").await;
    assert_eq!(seqs(&events), [1, 2, 3, 4]);
    assert_eq!(events[2].kind.name(), "FROM_A_LATER_VERSION");
    assert!(events[2].to_json().contains(r#""what":{"ever":1}"#), "written back as it came");
    let log = open_log(&journal, "s").await;
    assert_eq!(log.emit(text_delta("on")), 5);
}

#[tokio::test]
async fn of_a_damaged_session_one_reads_what_is_before_and_is_told() {
    let (_directory, path) = place();
    let kept = written(&path, 3).await;
    let sql = "UPDATE events SET event = '{\"type\":' WHERE seq = 12; UPDATE events SET event = x'ff00' WHERE seq = 20";
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let journal = SqliteJournal::open(&path).unwrap();
    let id = "s".parse().unwrap();
    assert_eq!(journal.read(&id, 1, 100).await.unwrap(), kept[..11]);
    let error = journal.read(&id, 12, 100).await.unwrap_err();
    assert!(matches!(error, JournalError::Damaged { seq: 12, .. }), "{error}");
    assert_eq!(seqs(&journal.read(&id, 13, 100).await.unwrap()), (13..20).collect::<Vec<_>>());
    // Retention stops there, and goes on with others.
    emit_run(&open_log(&journal, "other").await, "1", 8);
    let dropped = journal.retain(&Retention::all().with_max_events(1), kept[29].at).await.unwrap();
    assert_eq!((dropped, journal.session(&id).await.unwrap().unwrap().first), (10, 11));
    // A cursor passes over it.
    let log = open_log(&journal, "s").await;
    let seen: Vec<_> = log.subscribe_from(11).take(11).collect().await;
    let gap = |event: &AgentEvent| match &event.kind {
        EventKind::Gap { from_seq, to_seq, missed: 1, reason, .. } if from_seq == to_seq => {
            Some((event.seq, reason.clone().unwrap()))
        }
        _ => None,
    };
    let gaps: Vec<_> = seen.iter().filter_map(gap).collect();
    let reasons = [
        (12, "field \"type\" of an event: EOF while parsing a value at line 1 column 8".to_owned()),
        (20, "expected value at line 1 column 1".to_owned()),
    ];
    assert_eq!((&*gaps, seen.last().unwrap().seq), (&reasons[..], 21));
    assert!(seen.windows(2).all(|pair| pair[0].at <= pair[1].at));
}

#[tokio::test]
async fn events_that_are_missing_are_missing_together() {
    let (_directory, path) = place();
    let kept = written(&path, 2).await;
    let sql = "DELETE FROM events WHERE seq BETWEEN 5 AND 9; UPDATE sessions SET last = 9223372036854775807";
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let journal = SqliteJournal::open(&path).unwrap();
    let id = "s".parse().unwrap();
    let missing = async |from: u64| match journal.read(&id, from, 100).await.unwrap_err() {
        JournalError::Damaged { seq, through, .. } => (seq, through),
        error => panic!("{error}"),
    };
    assert_eq!(missing(5).await, (5, 9));
    assert_eq!(missing(7).await, (7, 9));
    assert_eq!(
        seqs(&journal.read(&id, 10, 100).await.unwrap()),
        (10..=kept.len() as u64).collect::<Vec<_>>()
    );
    assert_eq!(missing(kept.len() as u64 + 1).await, (kept.len() as u64 + 1, i64::MAX as u64));
}

#[tokio::test]
async fn a_reason_is_short_and_names_what_can_not_be_read() {
    let (_directory, path) = place();
    written(&path, 1).await;
    let long = "x".repeat(100_000);
    let sql = format!("UPDATE events SET event = json_set(event, '$.createdAt', '{long}') WHERE seq = 3");
    Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
    let journal = SqliteJournal::open(&path).unwrap();
    let JournalError::Damaged { why, .. } = journal.read(&"s".parse().unwrap(), 3, 9).await.unwrap_err()
    else {
        panic!()
    };
    assert!(why.contains("xxx") && why.len() <= 200, "{why}");
}

#[tokio::test]
async fn a_damaged_row_of_a_session_costs_that_session_and_can_be_deleted() {
    for column in ["first", "last", "streams", "runs", "run", "created_at", "updated_at"] {
        let (_directory, path) = place();
        written(&path, 2).await;
        let journal = SqliteJournal::open(&path).unwrap();
        let other = open_log(&journal, "other").await;
        ["1", "2"].iter().for_each(|n| emit_run(&other, n, 8));
        journal.flush().await.unwrap();
        let damage = format!("UPDATE sessions SET {column} = x'c328' WHERE name = 's'");
        Connection::open(&path).unwrap().execute_batch(&damage).unwrap();
        let all = journal.sessions().await.unwrap();
        let find = |id: &str| all.iter().find(|session| session.id.as_str() == id).unwrap();
        assert_eq!((all.len(), find("other").damage.as_deref()), (2, None), "{column}");
        // The list does not read what it does not need.
        assert_eq!(find("s").damage.is_some(), column != "streams", "{column}: {:?}", find("s"));
        assert_eq!(journal.session(&"s".parse().unwrap()).await.unwrap().unwrap(), *find("s"), "{column}");
        // A damaged session is not replaced by a new one.
        let opened = journal.open(&"s".parse().unwrap()).await;
        assert!(column == "first" || matches!(opened, Err(JournalError::Store { .. })), "{column}");
        drop(opened);
        assert!(!journal.is_open(&"s".parse().unwrap()).await.unwrap(), "{column}");
        let kept = journal.retain(&Retention::all().with_max_events(1), all[0].updated_at).await.unwrap();
        assert!(kept > 0, "{column}: those of others are dropped");
        assert!(journal.delete(&"s".parse().unwrap()).await.unwrap(), "{column}");
        assert_eq!(journal.sessions().await.unwrap().len(), 1, "{column}");
        assert_eq!(
            journal.read(&"s".parse().unwrap(), 1, 9).await.unwrap_err().to_string(),
            "the journal has no session s"
        );
    }
}

#[tokio::test]
async fn a_row_with_an_invalid_id_is_listed_with_the_reason_and_stays() {
    let (_directory, path) = place();
    let kept = written(&path, 2).await;
    let rename = |from: &str, to: &str| {
        let sql = format!("UPDATE sessions SET name = '{to}' WHERE name = '{from}'");
        Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
    };
    for (name, shown, place) in [("a b", "a_b", 2), ("acme/a b", "acme/a_b", 7), ("../s", "_./s", 1)] {
        rename("s", name);
        let journal = SqliteJournal::open(&path).unwrap();
        let all = journal.sessions().await.unwrap();
        assert_eq!((all.len(), all[0].id.as_str(), all[0].last), (1, shown, kept.len() as u64));
        let (damage, reason) = (all[0].damage.clone().unwrap(), format!("invalid session id {name:?}: "));
        assert!(damage.starts_with(&reason) && damage.contains(&format!("at character {place}")), "{damage}");
        rename(name, "s");
        assert_eq!(journal.read(&"s".parse().unwrap(), 1, 100).await.unwrap(), kept);
    }
}

#[tokio::test]
async fn a_damaged_event_is_one_with_an_invalid_id() {
    let (_directory, path) = place();
    let kept = written(&path, 2).await;
    let sql = "UPDATE events SET event = replace(event, '\"sessionId\":\"s\"', '\"sessionId\":\"s s\"') WHERE seq = 5";
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let journal = SqliteJournal::open(&path).unwrap();
    assert_eq!(journal.read(&"s".parse().unwrap(), 1, 100).await.unwrap(), kept[..4]);
    let error = journal.read(&"s".parse().unwrap(), 5, 100).await.unwrap_err().to_string();
    assert!(
        error.starts_with("event 5 of session s is damaged: ")
            && error.contains("invalid session id \"s s\""),
        "{error}"
    );
}

#[tokio::test]
async fn a_file_that_is_cut_or_overwritten_anywhere_is_an_error_or_reads_as_what_is_intact() {
    let (directory, path) = place();
    let kept = written(&path, 60).await;
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() > 100_000, "{}", bytes.len());
    let (mut errors, mut prefixes) = (0, 0);
    for part in 0..24 {
        let at = bytes.len() * part / 24;
        for cut in [true, false] {
            let broken = directory.path().join(format!("{part}-{cut}.db"));
            std::fs::write(&broken, &bytes[..if cut { at } else { bytes.len() }]).unwrap();
            if !cut {
                let mut file = std::fs::File::options().write(true).open(&broken).unwrap();
                file.seek(SeekFrom::Start(at as u64)).unwrap();
                file.write_all(&[0xa5; 6000][..6000.min(bytes.len() - at)]).unwrap();
            }
            let Ok(journal) = SqliteJournal::open(&broken) else {
                errors += 1;
                continue;
            };
            let mut read = Vec::new();
            loop {
                match journal.read(&"s".parse().unwrap(), read.len() as u64 + 1, 50).await {
                    Ok(page) if page.is_empty() => break,
                    Ok(page) => read.extend(page),
                    Err(error) => {
                        assert!(!error.to_string().is_empty());
                        errors += 1;
                        break;
                    }
                }
            }
            prefixes += 1;
            let place = "a part of what was written, from its beginning";
            assert_eq!(seqs(&read), seqs(&kept[..read.len()]), "{place}: {part} {cut}");
            assert!(read == kept[..read.len()], "{place}: {part} {cut}");
        }
    }
    assert!(errors > 24 && prefixes > 12, "{errors} errors, {prefixes} prefixes");
}

/// The process that is killed: appends under load and prints the number of each event that was
/// shown and promises durability.
#[test]
fn appends_until_it_is_killed() {
    let Ok(path) = std::env::var("MAINSTEM_JOURNAL_VICTIM") else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let journal = SqliteJournal::open(path).unwrap();
    let record = runtime.block_on(journal.open(&"s".parse().unwrap())).unwrap();
    // With the large ring, so that the reader has its events from there and not from the record.
    let log =
        SessionLog::with_record("s".parse().unwrap(), Arc::new(SystemClock), LogOptions::default(), record);
    let mut reader = log.subscribe();
    thread::spawn(move || {
        for n in 0_u64.. {
            let sink = root_sink(&log, &n.to_string());
            sink.emit(agent_start());
            for n in 0..n % 300 {
                sink.emit(text_delta((log.last_seq() + 1).to_string()));
                runtime.block_on(sink.settle());
                thread::sleep(Duration::from_millis(u64::from(n.is_multiple_of(32))));
            }
            sink.emit(agent_end());
        }
    });
    let mut out = std::io::stdout();
    loop {
        let event = futures_util::FutureExt::now_or_never(reader.next()).flatten();
        let Some(event) = event else {
            thread::sleep(Duration::from_micros(50));
            continue;
        };
        if event.kind.is_durable() {
            writeln!(out, "shown {}", event.seq).unwrap();
            out.flush().unwrap();
        }
    }
}

/// Kills it after so many milliseconds; returns the numbers that it has shown.
fn kill_after(millis: u64, path: &Path) -> Vec<u64> {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "appends_until_it_is_killed", "--nocapture"])
        .env("MAINSTEM_JOURNAL_VICTIM", path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let heard = thread::spawn(move || {
        let shown = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("shown ")?.parse().ok());
        shown.collect()
    });
    thread::sleep(Duration::from_millis(millis));
    // Now it can't commit, so that an event that it shows too early is lost.
    let in_the_way = Connection::open(path).unwrap();
    let is_in_the_way = millis.is_multiple_of(2) && in_the_way.execute_batch("BEGIN IMMEDIATE").is_ok();
    thread::sleep(Duration::from_millis(if is_in_the_way { 10 } else { 0 }));
    // On Unix a SIGKILL.
    victim.kill().unwrap();
    victim.wait().unwrap();
    heard.join().unwrap()
}

#[tokio::test]
async fn after_a_kill_there_is_no_hole_and_all_that_was_promised() {
    let files = if std::env::var_os("RUN_SLOW_TESTS").is_some() { 30 } else { 2 };
    let mut promised = 0;
    for file in 0..files {
        let (_directory, path) = place();
        let mut before = 0;
        for round in 0..6 {
            let shown = kill_after(30 + (file * 23 + round * 37) % 190, &path);
            let journal = SqliteJournal::open(&path).unwrap();
            let Some(session) = journal.session(&"s".parse().unwrap()).await.unwrap() else { continue };
            let kept = read_all(&journal, "s").await;
            assert_eq!(seqs(&kept), (1..=session.last).collect::<Vec<_>>());
            assert!(session.last >= before, "{before} were there already");
            for event in &kept {
                let EventKind::TextBlockDelta { delta, .. } = &event.kind else { continue };
                assert_eq!(*delta, event.seq.to_string());
            }
            for seq in &shown {
                assert!(kept[*seq as usize - 1].kind.is_durable(), "{seq} was shown as durable");
            }
            (before, promised) = (session.last, promised + shown.len());
            // The dead process holds no locks.
            assert_eq!(open_log(&journal, "s").await.last_seq(), before);
        }
    }
    assert!(promised > files as usize * 3, "{promised} were shown and promised");
}

/// Producers on threads of their own, a caller and late observers, with a ring that all of them
/// fall out of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_agree_while_the_ring_and_the_record_hand_over() {
    let (_directory, path) = place();
    let journal = SqliteJournal::open(&path).unwrap();
    let log = open_log(&journal, "s").await;
    const EACH: u64 = 1500;
    let caller = log.attach();
    let observers: Vec<_> = (0..3).map(|_| log.subscribe()).collect();
    let producers: Vec<_> = (0..3)
        .map(|n| {
            let sink = root_sink(&log, &n.to_string());
            thread::spawn(move || {
                for n in 0..EACH {
                    sink.emit(if n % 97 == 0 { agent_end() } else { text_delta("x") });
                    futures_util::FutureExt::now_or_never(sink.settle());
                    if n % 50 == 0 {
                        thread::sleep(Duration::from_millis(1));
                    }
                }
            })
        })
        .collect();
    let seen = join_all(
        observers
            .into_iter()
            .chain([caller])
            .map(|cursor| cursor.take(3 * EACH as usize).collect::<Vec<_>>()),
    );
    let seen = tokio::time::timeout(Duration::from_secs(60), seen).await.expect("every reader is woken");
    producers.into_iter().for_each(|producer| producer.join().unwrap());
    journal.flush().await.unwrap();
    let kept = read_all(&journal, "s").await;
    assert_eq!(seqs(&kept), (1..=3 * EACH).collect::<Vec<_>>());
    for events in seen {
        assert_eq!(seqs(&events), seqs(&kept));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Any mixture of appending, flushing, reading, reconnecting and opening again: every reader
    /// has the same events.
    #[test]
    fn any_reader_anywhere_has_the_same_concatenation(script in prop::collection::vec((0..6u8, 1..30usize), 1..30)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (_directory, path) = place();
            let journal = SqliteJournal::open(&path).unwrap();
            let mut session = open_log(&journal, "s").await;
            let mut seen: Vec<AgentEvent> = Vec::new();
            let mut reader = session.subscribe_from(1);
            session.emit(text_delta("first"));
            for (step, count) in script {
                match step {
                    0 => (0..count).for_each(|n| _ = session.emit(text_delta(n.to_string()))),
                    1 => emit_run(&session, "r", count),
                    2 => journal.flush().await.unwrap(),
                    3 | 4 => seen.extend((0..count).filter_map(|_| reader.try_next())),
                    _ if count % 2 == 0 => {
                        drop((reader, session));
                        session = open_log(&journal, "s").await;
                        reader = session.subscribe_from(seen.len() as u64 + 1);
                    }
                    _ => reader = session.subscribe_from(seen.len() as u64 + 1),
                }
            }
            journal.flush().await.unwrap();
            let rest = session.last_seq() as usize - seen.len();
            seen.extend(reader.take(rest).collect::<Vec<_>>().await);
            assert_eq!(seen, read_all(&journal, "s").await);
            for from in 1..=seen.len() {
                let first = session.subscribe_from(from as u64).next().await.unwrap();
                assert_eq!(first, seen[from - 1]);
            }
        });
    }
}

#[tokio::test]
async fn a_session_whose_opener_has_gone_can_be_opened() {
    let (_directory, path) = place();
    let journal = SqliteJournal::open(&path).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let id = SessionId::try_from("s").unwrap();
    let mut opening = journal.open(&id);
    assert!(poll_immediate(&mut opening).await.is_none());
    drop(opening);
    other.execute_batch("ROLLBACK").unwrap();
    // Its release is in the queue after this, once it was opened.
    journal.flush().await.unwrap();
    journal.flush().await.unwrap();
    drop(journal.open(&id).await.unwrap());
}

/// The last reference to a record. The writer drops it when it wakes the log.
struct LastReference(Mutex<Option<Arc<dyn Record>>>);

impl Wake for LastReference {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().unwrap().take());
    }
}

/// Returns a request that shares a transaction with an event, whose commit makes the writer drop
/// the last reference to the session.
async fn while_the_writer_drops<'a, T>(
    journal: &'a SqliteJournal,
    path: &Path,
    request: impl AsyncFnOnce(&'a SqliteJournal, SessionId) -> T,
) -> T {
    let events = MemoryJournal::new();
    emit_run(&open_log(&events, "s").await, "1", 1);
    let record = journal.open(&"s".parse().unwrap()).await.unwrap();
    let other = Connection::open(path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    read_all(&events, "s").await.iter().for_each(|event| record.append(event));
    let last = Arc::new(LastReference(Mutex::default()));
    record.watch(Waker::from(last.clone()));
    *last.0.lock().unwrap() = Some(record);
    let mut found = Box::pin(request(journal, "s".parse().unwrap()));
    assert!(poll_immediate(&mut found).await.is_none());
    other.execute_batch("ROLLBACK").unwrap();
    found.await
}

#[tokio::test]
async fn a_session_that_the_writer_has_just_released_is_deleted_and_is_not_open() {
    let (_directory, path) = place();
    let journal = SqliteJournal::open(&path).unwrap();
    let is_open = async |journal: &SqliteJournal, id| journal.is_open(&id).await.unwrap();
    assert!(!while_the_writer_drops(&journal, &path, is_open).await);
    assert!(journal.delete(&"s".parse().unwrap()).await.unwrap());
    let delete = async |journal: &SqliteJournal, id| journal.delete(&id).await.unwrap();
    assert!(while_the_writer_drops(&journal, &path, delete).await);
    assert_eq!(journal.sessions().await.unwrap(), []);
}

#[tokio::test]
async fn whether_a_session_is_open_is_found_while_another_process_writes() {
    let (_directory, path) = place();
    let [here, there] = [(); 2].map(|()| SqliteJournal::open(&path).unwrap());
    let open = (open_log(&here, "here").await, open_log(&there, "there").await);
    emit_run(&open_log(&here, "closed").await, "1", 1);
    here.flush().await.unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for (session, expected) in [("here", true), ("there", true), ("closed", false), ("unknown", false)] {
        let id = session.parse().unwrap();
        let found = tokio::time::timeout(Duration::from_secs(2), here.is_open(&id)).await;
        assert_eq!(found.expect(session).unwrap(), expected, "{session}");
    }
    drop(open);
}

#[tokio::test]
async fn events_that_a_group_leaves_do_not_wait_again() {
    let (_directory, path) = place();
    let journal = SqliteJournal::open(&path).unwrap();
    let log = open_log(&journal, "s").await;
    let write = || (0..200).for_each(|_| _ = log.emit(text_delta("x".repeat(200_000))));
    // A flush waits for no group, so its time is that of the disk.
    let begun = Instant::now();
    write();
    journal.flush().await.unwrap();
    let flushed = begun.elapsed();
    // Several groups, none of which is urgent.
    let begun = Instant::now();
    write();
    assert!(log.until_committed(400).await);
    let took = begun.elapsed();
    assert!(took < 2 * flushed + Duration::from_secs(1), "{took:?} and, flushed, {flushed:?}");
}

#[tokio::test]
async fn sessions_that_are_opened_together_are_each_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(dir.path().join("j.db")).unwrap();
    let ids: Vec<SessionId> =
        (0..64).map(|number| SessionId::try_from(format!("s-{}", number % 60)).unwrap()).collect();
    let opened = join_all(ids.iter().map(|id| journal.open(id))).await;
    let refused: Vec<_> = opened.iter().filter_map(|one| one.as_ref().err()).collect();
    assert_eq!((opened.len(), refused.len()), (64, 4), "{refused:?}");
    assert!(refused.iter().all(|one| matches!(one, JournalError::Busy { .. })), "{refused:?}");
    drop(opened);
    // Each is released, and opened again by itself.
    for id in &ids {
        drop(journal.open(id).await.unwrap());
    }
    assert_eq!(journal.sessions().await.unwrap().len(), 0, "none has an event");
}

/// A request to a journal about one of a few sessions.
#[derive(Clone, Copy, Debug)]
enum Step {
    Append(usize),
    Open(usize),
    Release(usize),
    Claim(usize),
    Checkpoint(usize, u64),
    Delete(usize),
    IsOpen(usize),
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3usize).prop_map(Step::Append),
        3 => (0..3usize).prop_map(Step::Open),
        2 => (0..3usize).prop_map(Step::Release),
        1 => (0..3usize).prop_map(Step::Claim),
        1 => (0..3usize, 0..6u64).prop_map(|(session, seq)| Step::Checkpoint(session, seq)),
        1 => (0..3usize).prop_map(Step::Delete),
        1 => (0..3usize).prop_map(Step::IsOpen),
        1 => Just(Step::Flush),
    ]
}

/// A journal, and the sessions that are open in it.
struct Used<J> {
    journal: J,
    logs: std::cell::RefCell<[Option<Arc<SessionLog>>; 3]>,
}

impl<J: Journal> Used<J> {
    fn new(journal: J) -> Self {
        Self { journal, logs: Default::default() }
    }

    /// Returns what became of the step, as text. All that has an order happens at the first poll.
    async fn take(&self, step: Step) -> String {
        // Each of another tenant.
        let name = |session: usize| SessionId::parse_scoped(&format!("t-{session}/s")).unwrap();
        let result = match step {
            Step::Append(session) => {
                let log = self.logs.borrow()[session].clone();
                log.into_iter().for_each(|log| emit_run(&log, &log.last_seq().to_string(), 1));
                Ok(String::new())
            }
            Step::Open(session) => {
                let opened = self.journal.open(&name(session)).await;
                opened.map(|record| {
                    let options = LogOptions::default();
                    let clock = Arc::new(mainstem_testing::FakeClock::default());
                    let log = SessionLog::with_record(name(session), clock, options, record);
                    let last = log.last_seq();
                    self.logs.borrow_mut()[session] = Some(log);
                    last.to_string()
                })
            }
            Step::Release(session) => {
                drop(self.logs.borrow_mut()[session].take());
                Ok(String::new())
            }
            Step::Claim(session) => {
                let (key, run) = (format!("k-{session}"), "r".parse().unwrap());
                let claim = Claim {
                    key,
                    digest: String::new(),
                    session: name(session),
                    run,
                    at: Timestamp::default(),
                };
                self.journal.claim(claim).await.map(|claimed| format!("{claimed:?}"))
            }
            Step::Checkpoint(session, seq) => {
                let checkpoint = Checkpoint { seq, state: format!("{session} {seq}") };
                self.journal.store_checkpoint(&name(session), checkpoint).await.map(|()| String::new())
            }
            Step::Delete(session) => self.journal.delete(&name(session)).await.map(|had| had.to_string()),
            Step::IsOpen(session) => self.journal.is_open(&name(session)).await.map(|open| open.to_string()),
            Step::Flush => self.journal.flush().await.map(|()| String::new()),
        };
        result.unwrap_or_else(|error| error.to_string())
    }

    /// Returns the steps that have one meaning whatever shares their transaction: no release
    /// follows an attempt to open or delete what is open, or the question whether it is, for these
    /// wait for a release; and what is opened in this round is used in the next.
    fn unambiguous(&self, steps: &[Step]) -> Vec<Step> {
        let mut is_open = self.logs.borrow().each_ref().map(Option::is_some);
        let mut is_fixed = [false; 3];
        let mut is_held = [false; 3];
        let mut keep = |step: &Step| match *step {
            Step::Append(session) => is_open[session] && !is_fixed[session],
            Step::Open(session) => {
                let is_new = !is_fixed[session];
                is_fixed[session] = true;
                is_new
            }
            Step::Release(session) => {
                !is_fixed[session] && !is_held[session] && std::mem::take(&mut is_open[session])
            }
            Step::Delete(session) | Step::IsOpen(session) => {
                is_held[session] |= is_open[session];
                true
            }
            _ => true,
        };
        steps.iter().copied().filter(|step| keep(step)).collect()
    }

    async fn contents(&self) -> String {
        let mut contents = String::new();
        let mut sessions = self.journal.sessions().await.unwrap();
        sessions.sort_by(|one, other| one.id.cmp(&other.id));
        for session in sessions {
            let events = read_all(&self.journal, session.id.as_str()).await;
            let events: Vec<_> = events.iter().map(|event| (event.seq, event.kind.name())).collect();
            let checkpoint = self.journal.checkpoint(&session.id).await.unwrap();
            let (id, last, runs) = (session.id, session.last, session.runs);
            contents += &format!("{id} {last} {runs} {checkpoint:?} {events:?}\n");
        }
        contents
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Requests that share a transaction have the outcomes that they have one by one.
    #[test]
    fn what_shares_a_transaction_is_done_in_order(rounds in prop::collection::vec(prop::collection::vec(step(), 1..14), 1..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (_directory, path) = place();
            let file = Used::new(SqliteJournal::open(&path).unwrap());
            let memory = Used::new(MemoryJournal::new());
            let other = Connection::open(&path).unwrap();
            for round in rounds {
                let steps = memory.unambiguous(&round);
                // Another process writes, so that all of these steps wait together.
                other.execute_batch("BEGIN IMMEDIATE").unwrap();
                let mut found = join_all(steps.iter().map(|step| file.take(*step)));
                let found_at_once = poll_immediate(&mut found).await;
                other.execute_batch("ROLLBACK").unwrap();
                let found = match found_at_once {
                    Some(found) => found,
                    None => found.await,
                };
                let mut expected = Vec::new();
                for step in &steps {
                    expected.push(memory.take(*step).await);
                }
                assert_eq!(found, expected, "{steps:?}");
            }
            file.journal.flush().await.unwrap();
            assert_eq!(file.contents().await, memory.contents().await);
        });
    }
}

#[tokio::test]
async fn a_file_of_a_program_without_jobs_stores_them() {
    let (_directory, path) = place();
    written(&path, 1).await;
    Connection::open(&path).unwrap().execute_batch("DROP TABLE jobs").unwrap();
    let journal = SqliteJournal::open(&path).unwrap();
    let jobs = journal.jobs().unwrap();
    let job = Job::new("job-1".parse().unwrap(), serde_json::json!({}), Timestamp::default());
    assert!(jobs.add(job.clone()).await.unwrap());
    // Another process takes a job once the one that has taken it has not renewed that in time.
    let other = SqliteJournal::open(&path).unwrap().jobs().unwrap();
    let take = Take { most: 1, ..Take::default() };
    assert_eq!(jobs.take(take.clone()).await.unwrap().len(), 1);
    assert_eq!(other.take(take.clone()).await.unwrap(), []);
    Connection::open(&path).unwrap().execute_batch("UPDATE jobs SET until = until - 30000000").unwrap();
    jobs.renew().await.unwrap();
    assert_eq!(other.take(take.clone()).await.unwrap(), []);
    Connection::open(&path).unwrap().execute_batch("UPDATE jobs SET until = until - 31000000").unwrap();
    assert_eq!(other.take(take.clone()).await.unwrap()[0].attempt, 2);
    // One that is damaged is told when it is read, and does not hold the others up.
    let damage = "UPDATE jobs SET record = '{', status = 'waiting'";
    Connection::open(&path).unwrap().execute_batch(damage).unwrap();
    let next = Job::new("job-2".parse().unwrap(), serde_json::json!({}), Timestamp::default());
    assert!(jobs.add(next).await.unwrap());
    assert_eq!(jobs.take(take).await.unwrap()[0].id.as_str(), "job-2");
    assert!(jobs.job(&job.id).await.unwrap_err().to_string().contains("cannot read a job of"));
}
