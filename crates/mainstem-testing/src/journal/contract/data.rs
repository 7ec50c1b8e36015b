//! The contract of `Journal`: data beside the events of a session.

use mainstem_journal::{Journal, MAX_WAITING_DATA, WHOLE};
use mainstem_message::SessionId;

use crate::journal::{emit_run, open_log};

pub(super) async fn data_of_a_session_is_stored_once(journal: &dyn Journal) {
    let (session, other): (SessionId, SessionId) = ("data".parse().unwrap(), "data-too".parse().unwrap());
    let (id, all) = ("a".repeat(64).parse().unwrap(), (0..=255).cycle().take(300_000).collect::<Vec<u8>>());
    // Before the session has begun, and while it is open.
    assert!(journal.store_data(&session, &id, all.clone().into()).await.unwrap());
    let log = open_log(journal, "data").await;
    emit_run(&log, "data", 2);
    journal.flush().await.unwrap();
    assert!(journal.store_data(&session, &id, all.clone().into()).await.unwrap());
    drop(log);
    assert_eq!(journal.data(&session, &id, WHOLE).await.unwrap().unwrap(), all);
    assert_eq!(journal.data(&session, &"b".repeat(64).parse().unwrap(), WHOLE).await.unwrap(), None);
    // In parts, as far as it goes.
    assert_eq!(journal.data_size(&session, &id).await.unwrap(), Some(300_000));
    for part in [0..10, 250_000..250_256, 299_990..400_000, 300_000..300_010, 400_000..400_001] {
        let expected: Vec<_> = part.clone().filter(|n| *n < 300_000).map(|n| n as u8).collect();
        assert_eq!(journal.data(&session, &id, part).await.unwrap().unwrap(), expected);
    }
    // Another session has its own.
    assert_eq!(journal.data(&other, &id, WHOLE).await.unwrap(), None);
    assert_eq!(journal.data_size(&other, &id).await.unwrap(), None);
    journal.store_data(&other, &id, b"x".to_vec().into()).await.unwrap();
    assert_eq!(journal.data(&session, &id, WHOLE).await.unwrap().unwrap(), all);
    emit_run(&open_log(journal, "data-too").await, "data-too", 2);
    journal.flush().await.unwrap();

    let size = |sizes: Vec<(SessionId, u64)>| sizes.into_iter().find(|(id, _)| *id == session).unwrap().1;
    let size = size(journal.sizes().await.unwrap());
    assert!((300_000..310_000).contains(&size), "{size}");

    assert!(journal.delete(&session).await.unwrap());
    assert_eq!(journal.data(&session, &id, WHOLE).await.unwrap(), None);
    assert_eq!(journal.data(&other, &id, WHOLE).await.unwrap().unwrap(), &b"x"[..]);
    assert!(journal.delete(&other).await.unwrap());

    // What waits for sessions to begin has a bound.
    let part = vec![1; MAX_WAITING_DATA as usize / 4];
    let store = async |session: &str, bytes: Vec<u8>| {
        let id = format!("{session}-{}", bytes.len()).parse().unwrap();
        journal.store_data(&session.parse().unwrap(), &id, bytes.into()).await.unwrap()
    };
    for session in ["waits-1", "waits-2", "waits-3", "waits-4"] {
        assert!(store(session, part.clone()).await, "{session}");
    }
    assert!(!store("waits-5", vec![1]).await);
    emit_run(&open_log(journal, "waits-1").await, "waits-1", 2);
    journal.flush().await.unwrap();
    assert!(store("waits-1", vec![1]).await && store("waits-5", vec![1]).await);
    for session in ["waits-1", "waits-2", "waits-3", "waits-4", "waits-5"] {
        journal.delete(&session.parse().unwrap()).await.unwrap();
    }
}

/// Checks that the data of one tenant leaves room for that of another, in a journal that is whole.
///
/// # Panics
/// If it does not.
pub async fn check_tenants(journal: &dyn Journal) {
    let id = "a".repeat(64).parse().unwrap();
    let half = vec![1; MAX_WAITING_DATA as usize / 2];
    for (session, bytes, has_room) in [
        ("acme/a", &half[..], true),
        ("acme/b", &half, true),
        ("acme/c", &[1], false),
        ("acme-too/a", &half, true),
        ("a", &half, true),
    ] {
        let name = SessionId::parse_scoped(session).unwrap();
        let is_stored = journal.store_data(&name, &id, bytes.to_vec().into()).await.unwrap();
        assert_eq!(is_stored, has_room, "{session}");
    }
}
