//! A program over `mainstem-journal` alone: a session is recorded, and read after its log
//! is dropped.

use std::sync::Arc;

use mainstem_journal::{
    Journal, MemoryJournal,
    event::{EventKind, LogOptions, SessionLog, SystemClock},
};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let journal = MemoryJournal::new();
    let id = "session-1".parse().expect("an id");
    let record = journal.open(&id).await.expect("a new session");
    let log = SessionLog::with_record(id.clone(), Arc::new(SystemClock), LogOptions::default(), record);
    for number in 1..=3 {
        log.emit(EventKind::Custom { name: "step".into(), value: number.into() });
    }
    drop(log);

    // A reader begins where it likes; numbers have no holes.
    let events = journal.read(&id, 2, 100).await.expect("a recorded session");
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [2, 3]);
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_program_runs() {
        super::main();
    }
}
