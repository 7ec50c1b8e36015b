//! The contract of `Journal`: sessions, their writer and their readers.

pub(super) mod data;
pub(super) mod jobs;
mod links;
pub(super) mod pages;
mod queued;
mod stored;

use std::sync::Arc;

use futures_util::{StreamExt, future::join_all};
use mainstem_event::{AgentEvent, EventSink, EventSource};
use mainstem_journal::{Journal, JournalError};

use super::{agent_end, agent_start, emit_run, open_log, read_all, root_sink, text_delta};

/// Checks the whole contract over an empty journal, which it closes at the end.
///
/// # Panics
/// If the journal breaks it.
pub async fn check(journal: Arc<dyn Journal>) {
    a_session_exists_from_its_first_event(&*journal).await;
    a_session_continues_where_it_stopped(&*journal).await;
    a_session_has_one_writer(&*journal).await;
    readers_see_only_committed_ends(&*journal).await;
    any_reader_has_the_same_events(&*journal).await;
    many_sessions_at_once(&*journal).await;
    stored::the_size_of_a_session_is_that_of_its_events(&*journal).await;
    stored::retention_drops_whole_invocations(&*journal).await;
    stored::runs_are_found_by_their_ids(&*journal).await;
    stored::a_key_is_claimed_once(&*journal).await;
    stored::the_latest_checkpoint_is_stored(&*journal).await;
    stored::states_of_earlier_moments_are_stored(&*journal).await;
    links::a_link_ends_with_its_session(&*journal).await;
    queued::a_queued_run_is_stored_until_it_is_removed(&*journal).await;
    data::data_of_a_session_is_stored_once(&*journal).await;
    stored::a_deleted_session_begins_anew(&*journal).await;
    stored::a_log_fails_after_the_close(&*journal).await;
}

fn child(parent: &EventSink, name: &str) -> EventSink {
    let origin = parent.origin();
    let source = EventSource {
        agent_key: format!("agent:{name}:1").parse().unwrap(),
        agent_id: name.into(),
        agent_name: None,
        label: None,
        title: None,
        session_id: format!("sub-{name}").parse().unwrap(),
        parent_session_id: origin.session_id.clone(),
        depth: 1,
        path: format!("{}/{name}", origin.session_id).into(),
        task_id: None,
        turn: 1,
        parent_tool_call_id: None,
        stream_id: 0,
    };
    parent.child(source, format!("reply-{name}").parse().unwrap())
}

fn seqs(events: &[AgentEvent]) -> Vec<u64> {
    events.iter().map(|event| event.seq).collect()
}

async fn a_session_exists_from_its_first_event(journal: &dyn Journal) {
    let unknown = journal.read(&"a".parse().unwrap(), 1, 9).await.unwrap_err();
    assert!(matches!(unknown, JournalError::Unknown { .. }), "{unknown}");
    assert!(journal.sessions().await.unwrap().is_empty());
    let log = open_log(journal, "a").await;
    assert_eq!(journal.session(&"a".parse().unwrap()).await.unwrap(), None);
    emit_run(&log, "1", 20);
    journal.flush().await.unwrap();
    assert_eq!(log.committed(), Some(22));
    let a = journal.session(&"a".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!((a.first, a.last, a.runs, a.events(), a.unfinished), (1, 22, 1, 22, None));
    let events = read_all(journal, "a").await;
    assert_eq!((a.created_at, a.updated_at), (events[0].at, events[21].at));
    assert_eq!(seqs(&events), (1..=22).collect::<Vec<_>>());
    let read = async |from, max| seqs(&journal.read(&"a".parse().unwrap(), from, max).await.unwrap());
    assert_eq!(read(5, 3).await, [5, 6, 7]);
    assert_eq!(read(21, 100).await, [21, 22]);
    assert_eq!((read(23, 100).await, read(u64::MAX, 1).await, read(1, 0).await), (vec![], vec![], vec![]));
}

async fn a_session_continues_where_it_stopped(journal: &dyn Journal) {
    let before = open_log(journal, "b").await;
    let root_before = root_sink(&before, "1");
    root_before.emit(agent_start());
    child(&root_before, "kid").emit(agent_start());
    journal.flush().await.unwrap();
    drop((root_before, before));
    let b = journal.session(&"b".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!((b.last, b.runs, b.unfinished), (2, 1, Some("1".parse().unwrap())));
    let after = open_log(journal, "b").await;
    assert_eq!((after.last_seq(), after.committed()), (2, Some(2)));
    assert_eq!(after.emit(text_delta("the run that was cut")), 3);
    let other = child(&root_sink(&after, "1"), "other");
    assert_eq!(other.emit(agent_start()), 4);
    assert_eq!(other.origin().source.as_ref().unwrap().stream_id, 2);
    root_sink(&after, "1").emit(agent_end());
    let read: Vec<_> = after.subscribe_from(1).take(5).collect().await;
    assert_eq!(read, read_all(journal, "b").await);
    assert_eq!(read[2].run_id().map(|run| run.as_str()), Some("1"));
    let b = journal.session(&"b".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(b.unfinished, None);
    // Where processes share the journal, the run counts as cut until it is forgotten.
    assert!(b.cut.is_none() || b.cut == Some("1".parse().unwrap()), "{b:?}");
    journal.forget_cut(&b.id).await.unwrap();
    assert_eq!(journal.session(&b.id).await.unwrap().unwrap().cut, None);
}

async fn a_session_has_one_writer(journal: &dyn Journal) {
    let is_open = async || journal.is_open(&"c".parse().unwrap()).await.unwrap();
    assert!(!is_open().await, "it does not exist yet");
    let first = open_log(journal, "c").await;
    let cursor = first.subscribe();
    let busy = async || journal.open(&"c".parse().unwrap()).await.err().unwrap();
    assert!(matches!(busy().await, JournalError::Busy { .. }) && busy().await.is_retryable());
    let not_deleted = journal.delete(&"c".parse().unwrap()).await.unwrap_err();
    assert!(matches!(not_deleted, JournalError::Busy { .. }), "{not_deleted}");
    assert!(is_open().await);
    drop(first);
    assert!(matches!(busy().await, JournalError::Busy { .. }), "a cursor holds its log");
    drop(cursor);
    assert!(!is_open().await, "the last holder was dropped");
    open_log(journal, "c").await.emit(text_delta("x"));
}

async fn readers_see_only_committed_ends(journal: &dyn Journal) {
    let log = open_log(journal, "d").await;
    let mut reader = log.attach();
    for id in ["1", "2", "3"] {
        emit_run(&log, id, 2);
        loop {
            let event = reader.next().await.unwrap();
            let is_committed = log.committed() >= Some(event.seq);
            assert!(is_committed || !event.kind.is_durable(), "{event} was shown before it was committed");
            if event.is_run_end() {
                assert_eq!(read_all(journal, "d").await.last(), Some(&event));
                break;
            }
        }
    }
}

async fn any_reader_has_the_same_events(journal: &dyn Journal) {
    let log = open_log(journal, "e").await;
    let early = log.subscribe();
    let runs = 0..40;
    runs.for_each(|n| emit_run(&log, &n.to_string(), 20));
    let last = log.last_seq();
    journal.flush().await.unwrap();
    let recorded = read_all(journal, "e").await;
    assert_eq!(recorded.len() as u64, last);
    let rest = |from: u64| log.subscribe_from(from).take((last + 1 - from) as usize).collect::<Vec<_>>();
    assert_eq!(early.take(last as usize).collect::<Vec<_>>().await, recorded);
    for from in (1..=last).rev().step_by(37).chain([1, last]) {
        assert_eq!(rest(from).await, recorded[from as usize - 1..], "from {from}");
    }
    // A reader from near the end gets later events, too.
    let mut tail = log.subscribe_from(last - 20);
    emit_run(&log, "more", 3);
    let read: Vec<_> = tail.by_ref().take(26).collect().await;
    assert_eq!(seqs(&read), (last - 20..=last + 5).collect::<Vec<_>>());
}

async fn many_sessions_at_once(journal: &dyn Journal) {
    let names: Vec<_> = (0..12).map(|n| format!("m/{n}.~:")).collect();
    let logs = join_all(names.iter().map(|name| open_log(journal, name))).await;
    for n in 0..10 {
        logs.iter().for_each(|log| emit_run(log, &n.to_string(), 3));
    }
    let ends = logs.iter().map(|log| log.subscribe_from(1).take(50).collect::<Vec<_>>());
    for (name, seen) in names.iter().zip(join_all(ends).await) {
        assert_eq!(read_all(journal, name).await, seen);
        assert!(seen.iter().all(|event| event.session_id().as_str() == name));
    }
    let found = journal.sessions().await.unwrap();
    assert_eq!(found.iter().filter(|session| session.id.as_str().starts_with("m/")).count(), 12);
    assert!(found.is_sorted_by_key(|session| std::cmp::Reverse(session.updated_at)), "the latest first");
}
