//! What the writer does when there can be no transaction.

use tokio::sync::oneshot;

use super::{
    super::{op::Answer, schema},
    *,
};

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
    queue.push(Op::Open("s".into(), Answer::new(caller)));
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
