//! Pages of sessions: each session once, in the order of their last runs, within a part.

use std::sync::Arc;

use mainstem_event::{LogOptions, SessionLog, SystemClock};
use mainstem_journal::{Journal, Listing, Part, Place, Scoped, SessionSummary};
use mainstem_message::SessionId;

use super::{agent_end, agent_start, emit_run, root_sink, text_delta};

/// Checks the pages of an empty journal, which is not a tenant's part of one.
///
/// # Panics
/// If the journal breaks the contract.
pub async fn check(journal: &Arc<dyn Journal>) {
    let of =
        |tenant: &str| Arc::new(Scoped::new(journal.clone(), tenant.parse().unwrap())) as Arc<dyn Journal>;
    let (acme, other) = (of("pages"), of("pages-2"));
    let names = ["One", "two", "three", "four", "five"];
    for name in names {
        emit_run(&log(&*acme, name).await, name, 2);
        emit_run(&log(&*other, name).await, &format!("other-{name}"), 2);
        journal.flush().await.unwrap();
    }
    emit_run(&log(&**journal, "plain").await, "plain", 2);
    // A further run brings a session to the front; what else happens in it does not.
    let again = log(&*acme, "two").await;
    emit_run(&again, "again", 2);
    log(&*acme, "One").await.emit(text_delta("a word"));
    journal.flush().await.unwrap();
    let listed = async |journal: &dyn Journal, part: Part, search: &str| {
        let found = journal.list(&Listing::new(part, 99).with_search(search)).await.unwrap();
        let ids: Vec<_> = found.iter().map(|session| session.id.to_string()).collect();
        for size in 1..=found.len() {
            assert_eq!(by_pages(journal, &found, size, search).await, ids, "pages of {size}");
        }
        ids
    };
    let own = Part::Of(None);
    assert_eq!(listed(&*acme, own.clone(), "").await, ["two", "five", "four", "three", "One"]);
    assert_eq!(listed(&*acme, own.clone(), "O").await, ["two", "four", "One"]);
    assert_eq!(listed(&*acme, own.clone(), "pages").await, [""; 0], "the tenant's name is no part of an id");
    assert_eq!(listed(&*acme, own.clone(), "%").await, [""; 0]);
    assert_eq!(listed(&**journal, own, "").await, ["plain"]);
    let part = Part::Of(Some("pages-2".parse().unwrap()));
    assert_eq!(listed(&**journal, part, "IV").await, ["pages-2/five"]);
    let all = journal.list(&Listing::new(Part::All, usize::MAX)).await.unwrap();
    assert_eq!(all.len(), journal.sessions().await.unwrap().len());
    assert!(all.is_sorted_by(|one, other| one.place > other.place));
    for session in all {
        assert_eq!(journal.session(&session.id).await.unwrap(), Some(session));
    }
    check_active(journal).await;
}

/// Checks which sessions have a run that has not ended.
async fn check_active(journal: &Arc<dyn Journal>) {
    let of =
        |tenant: &str| Arc::new(Scoped::new(journal.clone(), tenant.parse().unwrap())) as Arc<dyn Journal>;
    let (acme, other) = (of("active"), of("active-2"));
    let active = async |journal: &dyn Journal, part: Part, max: usize| {
        let found = journal.active(&part, max).await.unwrap();
        found.into_iter().map(|active| (active.session.id.to_string(), active.is_open)).collect::<Vec<_>>()
    };
    let own = Part::Of(None);
    assert_eq!(active(&*acme, own.clone(), 9).await, []);
    let (first, closed, foreign) =
        (log(&*acme, "first").await, log(&*acme, "closed").await, log(&*other, "foreign").await);
    for log in [&first, &closed, &foreign] {
        root_sink(log, log.session_id().as_str()).emit(agent_start());
        journal.flush().await.unwrap();
    }
    let whole = async || active(&**journal, Part::All, usize::MAX).await;
    let has = |all: &[(String, bool)], name: &str| all.iter().any(|(id, _)| id == name);
    assert_eq!(active(&*acme, own.clone(), 1).await, [("closed".to_owned(), true)], "the latest first");
    drop(closed);
    journal.flush().await.unwrap();
    let expected = [("closed".to_owned(), false), ("first".to_owned(), true)];
    assert_eq!(active(&*acme, own.clone(), 9).await, expected);
    assert_eq!(active(&*other, own.clone(), 9).await, [("foreign".to_owned(), true)]);
    assert!(has(&whole().await, "active/first") && has(&whole().await, "active-2/foreign"));
    assert!(!has(&active(&**journal, own.clone(), usize::MAX).await, "active/first"));
    root_sink(&first, "first").emit(agent_end());
    journal.flush().await.unwrap();
    assert_eq!(active(&*acme, own, 9).await, [("closed".to_owned(), false)]);
}

async fn log(journal: &dyn Journal, session: &str) -> Arc<SessionLog> {
    let id: SessionId = session.parse().unwrap();
    let record = journal.open(&id).await.unwrap();
    SessionLog::with_record(id, Arc::new(SystemClock), LogOptions::default(), record)
}

/// Returns the ids of all pages of this size; the first has the part of these sessions.
async fn by_pages(journal: &dyn Journal, all: &[SessionSummary], size: usize, search: &str) -> Vec<String> {
    let tenant = all[0].id.tenant().map(|tenant| tenant.parse().unwrap());
    let mut listing = Listing::new(Part::Of(tenant), size).with_search(search);
    let mut ids = Vec::new();
    loop {
        let page = journal.list(&listing).await.unwrap();
        assert!(page.len() <= size);
        ids.extend(page.iter().map(|session| session.id.to_string()));
        match page.last() {
            // As a client has it: as text.
            Some(last) => listing.after = Some(last.place.to_string().parse::<Place>().unwrap()),
            None => return ids,
        }
    }
}
