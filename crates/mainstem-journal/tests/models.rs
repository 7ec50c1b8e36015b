//! The whole journal under every schedule that shuttle tries: events that are appended are
//! committed, shown, and there again after a reopening.
#![cfg(shuttle)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{path::Path, sync::Arc};

use futures_util::StreamExt;
use mainstem_event::{AgentEvent, Cursor, EventKind, EventSink, Outcome, Rollup, SessionLog};
use mainstem_journal::{Journal, SqliteJournal};
use mainstem_testing::{
    in_all_orders,
    journal::{open_log, root_sink},
};
use shuttle::{future::block_on, thread};

/// Schedules of each model; each writes a file.
const SCHEDULES: usize = 60;

fn place() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

fn open(place: &tempfile::TempDir) -> SqliteJournal {
    SqliteJournal::open(place.path().join("journal.db")).unwrap()
}

fn text(delta: &str) -> EventKind {
    EventKind::TextBlockDelta { block_id: "b".parse().unwrap(), delta: delta.into() }
}

fn end() -> EventKind {
    EventKind::agent_end(Outcome::Success, Rollup::default(), 0)
}

/// Emits four events, the second and the last of which are durable.
fn produce(sink: &EventSink) {
    block_on(async {
        for kind in [text("one"), end(), text("two"), end()] {
            sink.emit(kind);
            sink.settle().await;
        }
    });
}

/// Reads up to a number, without a hole; a durable event is committed by then.
fn read(cursor: &mut Cursor, through: u64, is_remote: bool) -> Vec<AgentEvent> {
    let mut seen: Vec<AgentEvent> = Vec::new();
    while (seen.len() as u64) < through {
        let event = block_on(cursor.next()).unwrap();
        assert_eq!(event.seq, seen.len() as u64 + 1);
        let is_committed = cursor.log().committed().unwrap() >= event.seq;
        assert!(is_committed || !(is_remote || event.kind.is_durable()), "{event}");
        seen.push(event);
    }
    seen
}

fn stored(journal: &SqliteJournal, session: &str) -> Vec<AgentEvent> {
    block_on(journal.read(&session.parse().unwrap(), 1, 100)).unwrap()
}

#[test]
fn what_a_log_hands_over_is_committed_shown_and_there_again() {
    in_all_orders(SCHEDULES, || {
        let place = place();
        let journal = open(&place);
        let session = block_on(open_log(&journal, "s"));
        let (mut caller, mut remote) = (session.attach(), session.committed_from(1));
        let producer = thread::spawn({
            let sink = root_sink(&session, "r");
            move || produce(&sink)
        });
        let remote = thread::spawn(move || read(&mut remote, 4, true));
        let seen = read(&mut caller, 4, false);
        producer.join().unwrap();
        assert_eq!(remote.join().unwrap(), seen);
        drop((caller, session));
        // Opened again at once: the events before are in the queue.
        let session: Arc<SessionLog> = block_on(open_log(&journal, "s"));
        assert_eq!(session.emit(text("three")), 5);
        drop((session, journal));
        // Dropping the last of them has waited for the appended events.
        let journal = open(&place);
        assert_eq!(stored(&journal, "s")[..4], seen);
        assert_eq!(stored(&journal, "s").len(), 5);
    });
}

#[test]
fn sessions_that_share_a_writer_hold_one_another_up_in_no_order() {
    in_all_orders(SCHEDULES, || {
        let place = place();
        let journal = open(&place);
        let threads = ["one", "two"].map(|name| {
            let session = block_on(open_log(&journal, name));
            thread::spawn(move || {
                let mut caller = session.attach();
                let producer = thread::spawn({
                    let sink = root_sink(&session, name);
                    move || produce(&sink)
                });
                let seen = read(&mut caller, 4, false);
                producer.join().unwrap();
                seen
            })
        });
        let seen = threads.map(|thread| thread.join().unwrap());
        block_on(journal.close()).unwrap();
        for (name, seen) in ["one", "two"].into_iter().zip(seen) {
            assert_eq!(stored(&journal, name), seen);
        }
    });
}
