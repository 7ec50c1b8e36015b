//! Accounts: how long they are open, and what drops do.

use std::{sync::Arc, time::Duration};

use mainstem_policy::{Amount, Budget, Tally};

use super::{Account, Spending};

fn tokens(tokens: u64) -> Budget {
    Budget::default().with_tokens(tokens)
}

fn tally(books: &Arc<Account>, of: &Arc<Account>) -> Option<Tally> {
    books.books().ledger.tally(of.id).copied()
}

#[test]
fn an_account_is_open_as_long_as_it_or_one_below_is_held() {
    let Spending { session } = Spending::new(tokens(100));
    let run = session.open("the run", None, Budget::default());
    let child = run.open("kid", Some("agent:kid:1".parse().unwrap()), tokens(50));
    let (run_id, child_id) = (run.id, child.id);
    drop(run);
    child.reserve(|| Amount::tokens(20)).unwrap().settle(Some(Amount::tokens(30)));
    let refused = child.reserve(|| Amount::tokens(40)).map(drop).unwrap_err();
    assert_eq!(refused.to_string(), "the token budget of kid has 20 of 50 left, 40 asked for");
    drop(child);
    let books = session.books();
    assert!(books.ledger.tally(run_id).is_none() && books.ledger.tally(child_id).is_none());
    assert_eq!(books.ledger.tally(session.id).unwrap().spent.tokens, 30);
}

#[test]
fn a_reservation_keeps_its_account_open_and_is_given_back_on_drop() {
    let Spending { session } = Spending::new(tokens(100));
    let run = session.open("the run", None, Budget::default());
    let reserved = run.reserve(|| Amount::tokens(60)).unwrap();
    drop(run);
    assert_eq!(tally(&session, &session).unwrap().held.tokens, 60);
    drop(reserved);
    let tally = tally(&session, &session).unwrap();
    assert_eq!((tally.held.tokens, tally.spent.tokens, tally.estimated.tokens), (0, 0, 0));
}

#[test]
fn without_an_answer_the_estimate_is_kept_and_marked() {
    let Spending { session } = Spending::new(tokens(100));
    session.reserve(|| Amount::tokens(60)).unwrap().settle(None);
    let tally = tally(&session, &session).unwrap();
    assert_eq!((tally.held.tokens, tally.spent.tokens, tally.estimated.tokens), (0, 60, 60));
}

#[test]
fn without_a_limit_nothing_is_estimated() {
    let Spending { session } = Spending::default();
    let run = session.open("the run", None, Budget::default());
    run.reserve(|| unreachable!("it is not estimated")).unwrap().settle(None);
    assert!(run.open("kid", None, tokens(1)).reserve(|| Amount::tokens(2)).is_err());
}

#[test]
fn the_least_time_counts_from_where_it_began() {
    let seconds = |seconds| Budget::default().with_time_seconds(seconds);
    let Spending { session } = Spending::new(seconds(10));
    session.books().clock = Duration::from_millis(7_500);
    let check = |limits, millis| {
        let left = session.open("the run", None, limits).time_left();
        assert_eq!(left, Some(Duration::from_millis(millis)), "{limits:?}");
    };
    check(Budget::default(), 2_500);
    check(seconds(1), 1_000);
    check(seconds(5), 2_500);
    assert_eq!(Spending::default().session.time_left(), None);
}
