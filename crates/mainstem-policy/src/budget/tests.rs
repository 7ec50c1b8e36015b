//! Budgets within budgets: what fits, what counts where, and the totals of random histories.

use std::time::Duration;

use proptest::prelude::*;

use super::{AccountId, Amount, Budget, Exceeded, Ledger, Reservation, Resource, Spend, estimated_usage};
use crate::Cost;

const NOW: Duration = Duration::ZERO;

fn dollars(tokens: u64, dollars: u64) -> Amount {
    Amount { cost: Some(Cost::from_dollars(dollars)), ..Amount::tokens(tokens) }
}

fn unpriced(tokens: u64) -> Amount {
    Amount { cost: None, ..Amount::tokens(tokens) }
}

#[test]
fn what_fits_is_reserved_and_what_does_not_says_why() {
    let check = |budget: Budget, amount: Amount, seconds: u64, expected: &str| {
        let (mut ledger, session) = Ledger::new("session", budget, Duration::from_secs(100));
        let reserved = ledger.reserve(session, amount, Duration::from_secs(100 + seconds));
        let answer = reserved.map_or_else(|error| error.to_string(), |_| "ok".to_owned());
        assert_eq!(answer, expected, "{budget:?} {amount:?}");
    };
    let none = Budget::default();
    check(none, dollars(u64::MAX, u64::MAX), 0, "ok");
    check(none, unpriced(5), 1_000_000, "ok");
    check(none.with_tokens(10), Amount::tokens(10), 0, "ok");
    check(
        none.with_tokens(10),
        Amount::tokens(11),
        0,
        "the token budget of session has 10 of 10 left, 11 asked for",
    );
    check(none.with_tokens(0), Amount::tokens(0), 0, "ok");
    check(none.with_tokens(0), Amount::spawn(), 0, "ok");
    check(none.with_spawns(1), Amount::spawn(), 0, "ok");
    check(
        none.with_spawns(0),
        Amount::spawn(),
        0,
        "the spawn budget of session has 0 of 0 left, 1 asked for",
    );
    let half = none.with_cost(Cost::from_micros(500_000));
    check(half, dollars(0, 1), 0, "the cost budget of session has $0.50 of $0.50 left, $1.00 asked for");
    check(
        half,
        unpriced(0),
        0,
        "the cost budget of session has $0.50 left, and the model's price is unknown: set it in `[prices]`, or with `Prices`",
    );
    check(half, Amount::spawn(), 0, "ok");
    check(none.with_time_seconds(60), Amount::tokens(1), 59, "ok");
    check(
        none.with_time_seconds(60),
        Amount::tokens(1),
        60,
        "the time budget of session is used up: it had 60 s",
    );
    check(
        none.with_time_seconds(0),
        Amount::tokens(1),
        0,
        "the time budget of session is used up: it had 0 s",
    );
}

#[test]
fn a_clock_that_goes_back_is_no_error() {
    let (mut ledger, session) =
        Ledger::new("s", Budget::default().with_time_seconds(1), Duration::from_secs(9));
    assert!(ledger.reserve(session, Amount::tokens(1), NOW).is_ok());
}

#[test]
fn settling_corrects_and_releasing_restores() {
    let check = |actual: Option<Amount>, spent: Amount, estimated: Amount, unpriced: u64| {
        let (mut ledger, session) = Ledger::new("session", Budget::default(), NOW);
        let reservation = ledger.reserve(session, dollars(100, 2), NOW).unwrap();
        assert_eq!(ledger.tally(session).unwrap().held, dollars(100, 2).known());
        ledger.settle(reservation, actual);
        let tally = ledger.tally(session).unwrap();
        assert_eq!((tally.spent, tally.estimated), (spent.known(), estimated.known()), "{actual:?}");
        assert_eq!((tally.held, tally.unpriced), (Spend::default(), unpriced), "{actual:?}");
    };
    check(Some(dollars(40, 1)), dollars(40, 1), Amount::tokens(0), 0);
    check(Some(dollars(400, 3)), dollars(400, 3), Amount::tokens(0), 0);
    check(Some(unpriced(40)), dollars(40, 2), dollars(0, 2), 0);
    check(None, dollars(100, 2), dollars(100, 2), 0);

    let (mut ledger, session) = Ledger::new("session", Budget::default(), NOW);
    let reservation = ledger.reserve(session, unpriced(5), NOW).unwrap();
    ledger.settle(reservation, Some(unpriced(6)));
    assert_eq!(
        (ledger.tally(session).unwrap().spent.tokens, ledger.tally(session).unwrap().unpriced),
        (6, 1)
    );
    let reservation = ledger.reserve(session, dollars(7, 7), NOW).unwrap();
    assert_eq!(reservation.amount(), dollars(7, 7));
    let before = *ledger.tally(session).unwrap();
    ledger.release(reservation);
    assert_eq!(ledger.tally(session).unwrap().held, Spend::default());
    assert_eq!(ledger.tally(session).unwrap().spent, before.spent);
}

#[test]
fn an_overrun_is_recorded_and_ends_the_budget() {
    let (mut ledger, session) = Ledger::new("session", Budget::default().with_tokens(10), NOW);
    let reservation = ledger.reserve(session, Amount::tokens(10), NOW).unwrap();
    ledger.settle(reservation, Some(Amount::tokens(15)));
    assert_eq!(ledger.tally(session).unwrap().spent.tokens, 15);
    let error = ledger.reserve(session, Amount::tokens(1), NOW).unwrap_err();
    assert_eq!(error.to_string(), "the token budget of session has 0 of 10 left, 1 asked for");
    assert_eq!(error.resource(), Some(Resource::Tokens));
}

#[test]
fn a_reservation_has_to_fit_every_budget_above() {
    let tokens = |tokens| Budget::default().with_tokens(tokens);
    let (mut ledger, session) = Ledger::new("session", tokens(100), NOW);
    let a = ledger.open(session, "a", tokens(80), NOW).unwrap();
    let b = ledger.open(session, "b", tokens(80), NOW).unwrap();
    let a1 = ledger.open(a, "a1", Budget::default(), NOW).unwrap();

    let first = ledger.reserve(a1, Amount::tokens(60), NOW).unwrap();
    let asked = |ledger: &mut Ledger, account| {
        ledger.reserve(account, Amount::tokens(50), NOW).unwrap_err().to_string()
    };
    assert_eq!(asked(&mut ledger, a1), "the token budget of a has 20 of 80 left, 50 asked for");
    assert_eq!(asked(&mut ledger, b), "the token budget of session has 40 of 100 left, 50 asked for");
    assert_eq!(ledger.tally(b).unwrap().held, Spend::default(), "a refusal leaves nothing behind");
    assert_eq!(ledger.left(a1, NOW), tokens(20));
    assert_eq!(ledger.left(b, NOW), tokens(40));
    assert_eq!(ledger.left(session, NOW), tokens(40));

    ledger.settle(first, Some(Amount::tokens(10)));
    for (account, spent) in [(a1, 10), (a, 10), (session, 10), (b, 0)] {
        assert_eq!(ledger.tally(account).unwrap().spent.tokens, spent);
    }
    assert!(ledger.reserve(b, Amount::tokens(50), NOW).is_ok());
}

#[test]
fn time_is_counted_from_when_an_account_is_opened() {
    let seconds = |seconds| Budget::default().with_time_seconds(seconds);
    let at = Duration::from_secs;
    let (mut ledger, session) = Ledger::new("session", seconds(100), at(0));
    let child = ledger.open(session, "child", seconds(10), at(50)).unwrap();
    assert_eq!(ledger.left(child, at(55)), seconds(5));
    assert!(ledger.reserve(child, Amount::tokens(1), at(59)).is_ok());
    let error = ledger.reserve(child, Amount::tokens(1), at(60)).unwrap_err();
    assert_eq!(error, Exceeded::Time { budget: "child".to_owned(), limit_seconds: 10 });
    assert!(ledger.reserve(session, Amount::tokens(1), at(60)).is_ok());
    assert_eq!(ledger.left(child, at(95)), seconds(0));
}

#[test]
fn a_closed_account_is_forgotten_once_nothing_depends_on_it() {
    let (mut ledger, session) = Ledger::new("session", Budget::default(), NOW);
    let parent = ledger.open(session, "parent", Budget::default(), NOW).unwrap();
    let child = ledger.open(parent, "child", Budget::default(), NOW).unwrap();
    let late = ledger.reserve(child, Amount::tokens(5), NOW).unwrap();

    ledger.close(parent);
    assert_eq!(ledger.reserve(parent, Amount::tokens(1), NOW).unwrap_err(), Exceeded::Closed);
    assert_eq!(ledger.reserve(child, Amount::tokens(1), NOW).unwrap_err(), Exceeded::Closed);
    assert_eq!(ledger.open(child, "grandchild", Budget::default(), NOW).unwrap_err(), Exceeded::Closed);
    ledger.close(child);
    assert!(ledger.tally(parent).is_some() && ledger.tally(child).is_some());

    ledger.settle(late, Some(Amount::tokens(7)));
    assert!(ledger.tally(parent).is_none() && ledger.tally(child).is_none());
    assert_eq!(ledger.tally(session).unwrap().spent.tokens, 7);
    assert_eq!(ledger.reserve(child, Amount::tokens(1), NOW).unwrap_err().resource(), None);
    ledger.close(child);
    ledger.close(session);
    assert!(ledger.tally(session).is_none());
}

#[test]
fn an_estimate_is_a_quarter_of_the_bytes_and_all_the_output() {
    let check = |bytes, most, total| assert_eq!(estimated_usage(bytes, most).total_tokens(), total);
    check(0, 0, 0);
    check(1, 0, 1);
    check(4_000, 500, 1_500);
    check(4_001, 500, 1_501);
    check(u64::MAX, u64::MAX, u64::MAX);
}

#[test]
fn limits_read_from_files() {
    let check = |text: &str, expected: Budget| assert_eq!(toml::from_str::<Budget>(text).unwrap(), expected);
    check("", Budget::default());
    let all =
        Budget::default().with_tokens(1).with_cost(Cost::from_micros(2)).with_spawns(3).with_time_seconds(4);
    check("tokens = 1\ncost = 2\nspawns = 3\ntime_seconds = 4", all);
    check(&toml::to_string(&all).unwrap(), all);
    assert!(toml::from_str::<Budget>("token = 1").unwrap_err().to_string().contains("unknown field `token`"));
    assert!(toml::from_str::<Budget>("tokens = -1").is_err());
}

#[derive(Clone, Debug)]
enum Step {
    Open { parent: usize, budget: Budget },
    Reserve { account: usize, amount: Amount },
    Settle { reservation: usize, actual: Option<Amount> },
    Release { reservation: usize },
    Close { account: usize },
}

fn amounts() -> impl Strategy<Value = Amount> {
    let cost = prop::option::weighted(0.9, (0..40_u64).prop_map(Cost::from_micros));
    (0..40_u64, cost, 0..3_u64).prop_map(|(tokens, cost, spawns)| Amount { tokens, cost, spawns })
}

fn budget() -> impl Strategy<Value = Budget> {
    (prop::option::of(0..200_u64), prop::option::of(0..200_u64), prop::option::of(0..9_u64)).prop_map(
        |(tokens, cost, spawns)| Budget {
            tokens,
            cost: cost.map(Cost::from_micros),
            spawns,
            time_seconds: None,
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = || 0..1_000_usize;
    let step = prop_oneof![
        2 => (index(), budget()).prop_map(|(parent, budget)| Step::Open { parent, budget }),
        6 => (index(), amounts()).prop_map(|(account, amount)| Step::Reserve { account, amount }),
        4 => (index(), prop::option::weighted(0.8, amounts())).prop_map(|(reservation, actual)| Step::Settle { reservation, actual }),
        2 => index().prop_map(|reservation| Step::Release { reservation }),
        1 => index().prop_map(|account| Step::Close { account }),
    ];
    prop::collection::vec(step, 0..60)
}

/// A naive ledger: every operation ever, by account.
struct Books {
    parents: Vec<Option<usize>>,
    budget: Vec<Budget>,
    ids: Vec<AccountId>,
    open: Vec<(usize, Reservation)>,
    /// Account, reserved amount, actual amount.
    settled: Vec<(usize, Amount, Option<Amount>)>,
}

impl Books {
    fn is_below(&self, account: usize, above: usize) -> bool {
        account == above || self.parents[account].is_some_and(|parent| self.is_below(parent, above))
    }

    fn check(&self, ledger: &Ledger) -> Result<(), TestCaseError> {
        for (above, id) in self.ids.iter().enumerate() {
            let Some(tally) = ledger.tally(*id) else { continue };
            let sum = |amounts: &mut dyn Iterator<Item = Spend>| amounts.fold(Spend::default(), Spend::plus);
            let held = sum(&mut self
                .open
                .iter()
                .filter(|(at, _)| self.is_below(*at, above))
                .map(|(_, r)| r.amount().known()));
            let below: Vec<_> = self.settled.iter().filter(|(at, ..)| self.is_below(*at, above)).collect();
            let came = |(_, reserved, actual): &&(usize, Amount, Option<Amount>)| {
                let actual = actual.unwrap_or(*reserved);
                Amount { cost: actual.cost.or(reserved.cost), ..actual }.known()
            };
            let spent = sum(&mut below.iter().copied().map(|entry| came(&entry)));
            let overrun = sum(&mut below.iter().copied().map(|entry| came(&entry).minus(entry.1.known())));
            prop_assert_eq!((tally.held, tally.spent), (held, spent));

            let used = spent.plus(held);
            let budget = self.budget[above];
            prop_assert!(budget.tokens.is_none_or(|limit| used.tokens <= limit + overrun.tokens));
            prop_assert!(budget.cost.is_none_or(|limit| used.cost <= limit + overrun.cost));
            prop_assert!(budget.spawns.is_none_or(|limit| used.spawns <= limit + overrun.spawns));
        }
        Ok(())
    }

    fn take(&mut self, index: usize) -> Option<(usize, Reservation)> {
        (!self.open.is_empty()).then(|| self.open.swap_remove(index % self.open.len()))
    }

    fn step(&mut self, ledger: &mut Ledger, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Open { parent, budget } => {
                let parent = parent % self.ids.len();
                if let Ok(id) = ledger.open(self.ids[parent], "child", budget, NOW) {
                    self.parents.push(Some(parent));
                    self.budget.push(budget);
                    self.ids.push(id);
                }
            }
            Step::Reserve { account, amount } => {
                let account = account % self.ids.len();
                let before = ledger.clone();
                if let Ok(reservation) = ledger.reserve(self.ids[account], amount, NOW) {
                    self.open.push((account, reservation));
                } else {
                    let same = |id| ledger.tally(id) == before.tally(id);
                    prop_assert!(self.ids.iter().all(|id| same(*id)), "a refusal changes nothing");
                }
            }
            Step::Settle { reservation, actual } => {
                if let Some((account, reservation)) = self.take(reservation) {
                    self.settled.push((account, reservation.amount(), actual));
                    ledger.settle(reservation, actual);
                }
            }
            Step::Release { reservation } => {
                if let Some((_, reservation)) = self.take(reservation) {
                    ledger.release(reservation);
                }
            }
            Step::Close { account } => ledger.close(self.ids[account % self.ids.len()]),
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn the_books_agree_at_every_level(root in budget(), steps in steps()) {
        let (mut ledger, id) = Ledger::new("session", root, NOW);
        let mut books = Books { parents: vec![None], budget: vec![root], ids: vec![id], open: vec![], settled: vec![] };
        for step in steps {
            books.step(&mut ledger, step)?;
            books.check(&ledger)?;
        }
        while let Some((_, reservation)) = books.take(0) {
            ledger.release(reservation);
        }
        books.check(&ledger)?;
    }

    #[test]
    fn releasing_restores_exactly(held in 0..u64::MAX, asked in 0..u64::MAX) {
        let (mut ledger, session) = Ledger::new("session", Budget::default(), NOW);
        let child = ledger.open(session, "child", Budget::default(), NOW).unwrap();
        let _first = ledger.reserve(child, Amount::tokens(held), NOW).unwrap();
        let before = ledger.clone();
        if let Ok(second) = ledger.reserve(child, Amount::tokens(asked), NOW) {
            ledger.release(second);
        }
        prop_assert_eq!(ledger.tally(child), before.tally(child));
        prop_assert_eq!(ledger.tally(session), before.tally(session));
    }

    #[test]
    fn what_is_left_can_be_reserved_and_no_more(levels in prop::collection::vec(1..100_u64, 1..4), used in 0..50_u64) {
        let tokens = |tokens| Budget::default().with_tokens(tokens);
        let (mut ledger, mut account) = Ledger::new("session", tokens(100), NOW);
        for level in levels {
            account = ledger.open(account, "child", tokens(level), NOW).unwrap();
        }
        let _ = ledger.reserve(account, Amount::tokens(used), NOW);
        let left = ledger.left(account, NOW).tokens.unwrap();
        prop_assert!(ledger.reserve(account, Amount::tokens(left + 1), NOW).is_err());
        prop_assert!(ledger.reserve(account, Amount::tokens(left), NOW).is_ok());
    }
}
