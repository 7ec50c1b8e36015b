//! The contract of `Journal`: data beside the events of a session.

use mainstem_journal::Journal;
use mainstem_message::SessionId;

use crate::journal::{emit_run, open_log};

pub(super) async fn data_of_a_session_is_stored_once(journal: &dyn Journal) {
    let (session, other): (SessionId, SessionId) = ("data".parse().unwrap(), "data-too".parse().unwrap());
    let (id, all) = ("a".repeat(64).parse().unwrap(), (0..=255).cycle().take(300_000).collect::<Vec<u8>>());
    // Before the session has begun, and while it is open.
    journal.store_data(&session, &id, all.clone().into()).await.unwrap();
    let log = open_log(journal, "data").await;
    emit_run(&log, "data", 2);
    journal.flush().await.unwrap();
    journal.store_data(&session, &id, all.clone().into()).await.unwrap();
    drop(log);
    assert_eq!(journal.data(&session, &id).await.unwrap().unwrap(), all);
    assert_eq!(journal.data(&session, &"b".repeat(64).parse().unwrap()).await.unwrap(), None);
    // Another session has its own.
    assert_eq!(journal.data(&other, &id).await.unwrap(), None);
    journal.store_data(&other, &id, b"x".to_vec().into()).await.unwrap();
    assert_eq!(journal.data(&session, &id).await.unwrap().unwrap(), all);
    emit_run(&open_log(journal, "data-too").await, "data-too", 2);
    journal.flush().await.unwrap();

    let size = |sizes: Vec<(SessionId, u64)>| sizes.into_iter().find(|(id, _)| *id == session).unwrap().1;
    let size = size(journal.sizes().await.unwrap());
    assert!((300_000..310_000).contains(&size), "{size}");

    assert!(journal.delete(&session).await.unwrap());
    assert_eq!(journal.data(&session, &id).await.unwrap(), None);
    assert_eq!(journal.data(&other, &id).await.unwrap().unwrap(), &b"x"[..]);
    assert!(journal.delete(&other).await.unwrap());
}
