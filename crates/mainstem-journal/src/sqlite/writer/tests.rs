//! The writer when a transaction can't begin.

use std::path::Path;

use mainstem_event::Timestamp;
use mainstem_message::SessionId;
use tokio::sync::oneshot;

use super::{
    super::{
        op::{Answer, Opened},
        schema,
    },
    *,
};
use crate::{Claim, Claimed};

/// Writes what is in the queue.
fn write(writer: &mut Writer, queue: &Arc<Queue>) {
    writer.write(Vec::new(), true, queue, || queue.pop(true));
}

#[test]
fn without_a_transaction_sessions_are_released_and_the_journal_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j.db");
    let mut writer = Writer::new(schema::open(&path, None).unwrap(), path);
    let queue = Arc::new(Queue::default());
    let (caller, mut opened) = oneshot::channel();
    queue.push(Op::Open("s".parse().unwrap(), Answer::new(caller)));
    write(&mut writer, &queue);
    let (entry, _) = opened.try_recv().unwrap().unwrap().take();
    assert_eq!(writer.open.len(), 1);
    writer.connection.pragma_update(None, "query_only", true).unwrap();
    let (caller, mut closed) = oneshot::channel();
    queue.push(Op::Release(entry));
    queue.push(Op::Close(Answer::new(caller)));
    write(&mut writer, &queue);
    let error = closed.try_recv().unwrap().unwrap_err();
    assert!(error.to_string().contains("readonly"), "{error}");
    assert!(writer.open.is_empty() && writer.is_closed);
}

/// Returns a writer of this file, and its queue.
fn writer(path: &Path) -> (Writer, Arc<Queue>) {
    let connection = schema::open(path, None).expect("a new file can be opened");
    (Writer::new(connection, path.to_owned()), Arc::default())
}

/// Asks for a session to be opened.
fn open(queue: &Queue, session: &str) -> oneshot::Receiver<Result<Opened, JournalError>> {
    let (caller, opened) = oneshot::channel();
    queue.push(Op::Open(SessionId::from_lossy(session), Answer::new(caller)));
    opened
}

#[test]
fn a_session_that_another_process_has_open_is_asked_for_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j.db");
    let [(mut here, queue_here), (mut there, queue_there)] = [(); 2].map(|()| writer(&path));
    let _opened = open(&queue_there, "s");
    write(&mut there, &queue_there);
    let mut refused = open(&queue_here, "s");
    write(&mut here, &queue_here);
    let error = refused.try_recv().unwrap().err().unwrap();
    assert!(matches!(error, JournalError::Busy { .. }), "{error}");
    assert!(queue_here.pop(true).is_none());
}

/// Returns how many transactions the file's log has.
fn commits(path: &Path) -> usize {
    let log = std::fs::read(format!("{}-wal", path.display())).expect("the file has a log");
    let number = |at: usize| log[at..at + 4].iter().fold(0, |number, byte| number << 8 | usize::from(*byte));
    let frame = 24 + number(8);
    // The last frame of a transaction has the size of the database.
    (32..log.len()).step_by(frame).filter(|at| number(at + 4) > 0).count()
}

#[test]
fn a_request_that_fails_costs_those_in_its_group_no_sync() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j.db");
    let (mut writer, queue) = writer(&path);
    let sql = "INSERT INTO sessions (name, last) VALUES ('damaged', x'c328')";
    writer.connection.execute_batch(sql).unwrap();
    let claims: Vec<_> = (0..20)
        .map(|number| {
            let (key, session) =
                (format!("k-{number}"), SessionId::parse_scoped(&format!("t-{number}/s")).unwrap());
            let (digest, run, at) = (String::new(), "r".parse().unwrap(), Timestamp::default());
            let (caller, claimed) = oneshot::channel();
            queue.push(Op::Claim(Box::new(Claim { key, digest, session, run, at }), Answer::new(caller)));
            claimed
        })
        .collect();
    let mut intact = open(&queue, "intact");
    let mut damaged = open(&queue, "damaged");
    let before = commits(&path);
    write(&mut writer, &queue);
    assert_eq!(commits(&path) - before, 1);
    assert!(matches!(damaged.try_recv().unwrap(), Err(JournalError::Store { .. })));
    assert_eq!(intact.try_recv().unwrap().unwrap().take().0.session.as_str(), "intact");
    for mut claimed in claims {
        assert_eq!(claimed.try_recv().unwrap().unwrap(), Claimed::New);
    }
}
