//! The contract of `Journal`: links of sessions.

use mainstem_event::Timestamp;
use mainstem_journal::{Journal, Link};

use crate::journal::{emit_run, open_log};

fn link(id: &str, session: &str, at: u64, through: Option<u64>) -> Link {
    Link {
        id: id.parse().unwrap(),
        session: session.parse().unwrap(),
        created_at: Timestamp::from_micros(at),
        expires_at: Timestamp::from_micros(at + 100),
        through,
    }
}

pub(super) async fn a_link_ends_with_its_session(journal: &dyn Journal) {
    let (session, other) = ("linked".parse().unwrap(), "linked-too".parse().unwrap());
    assert!(!journal.add_link(link("early", "linked", 1, None)).await.unwrap(), "there is no session");
    assert_eq!(journal.link(&"early".parse().unwrap()).await.unwrap(), None);
    for name in ["linked", "linked-too"] {
        emit_run(&open_log(journal, name).await, name, 2);
    }
    journal.flush().await.unwrap();

    // While the session is open, and after it is closed.
    let held = open_log(journal, "linked").await;
    let (b, a) = (link("b", "linked", 10, None), link("a", "linked", 20, Some(3)));
    let c = link("c", "linked-too", 30, Some(u64::MAX >> 1));
    for link in [&b, &a] {
        assert!(journal.add_link(link.clone()).await.unwrap());
    }
    drop(held);
    assert!(journal.add_link(c.clone()).await.unwrap());
    for link in [&a, &b, &c] {
        assert_eq!(journal.link(&link.id).await.unwrap().as_ref(), Some(link));
    }
    assert_eq!(journal.links(&session).await.unwrap(), [b.clone(), a.clone()], "the oldest comes first");
    assert_eq!(journal.links(&other).await.unwrap(), std::slice::from_ref(&c));
    assert_eq!(journal.links(&"nowhere".parse().unwrap()).await.unwrap(), []);

    assert!(journal.remove_link(&a.id).await.unwrap());
    assert!(!journal.remove_link(&a.id).await.unwrap());
    assert_eq!(journal.link(&a.id).await.unwrap(), None);

    // A new link removes those that have ended: `b` has, at 110, and `c` has not.
    let d = link("d", "linked-too", 110, None);
    assert!(journal.add_link(d.clone()).await.unwrap());
    assert_eq!(journal.link(&b.id).await.unwrap(), None);
    assert_eq!(journal.links(&other).await.unwrap(), [c, d.clone()]);

    // A later session of the same id has no links.
    assert!(journal.delete(&other).await.unwrap());
    emit_run(&open_log(journal, "linked-too").await, "later", 2);
    journal.flush().await.unwrap();
    assert_eq!(journal.links(&other).await.unwrap(), []);
    assert_eq!(journal.link(&d.id).await.unwrap(), None);
    for name in [session, other] {
        assert!(journal.delete(&name).await.unwrap());
    }
}
