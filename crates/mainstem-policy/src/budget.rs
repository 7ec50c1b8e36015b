//! Budgets within budgets.

use std::{collections::BTreeMap, iter, time::Duration};

mod amount;
mod bound;

pub use amount::{Amount, Spend, Tally, estimated_usage};
pub use bound::{Budget, Exceeded, Resource};

/// An account of a [`Ledger`]: the budget of a session, a run, or one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(u64);

/// Accounts below accounts, each with its own budget. A reservation has to fit its account and
/// every one above, and counts in all of them.
///
/// It reads no clock: times are durations since a fixed moment that the caller chooses. Ids and
/// reservations belong to their ledger.
///
/// ```
/// use std::time::Duration;
/// use mainstem_policy::{Amount, Ledger, Budget, Spend};
///
/// let now = Duration::ZERO;
/// let (mut ledger, session) = Ledger::new("session", Budget::default().with_tokens(10_000), now);
/// let child = ledger.open(session, "reviewer", Budget::default().with_tokens(4_000), now)?;
///
/// let reservation = ledger.reserve(child, Amount::tokens(3_000), now)?;
/// assert_eq!(
///     ledger.reserve(child, Amount::tokens(1_500), now).unwrap_err().to_string(),
///     "the token budget of reviewer has 1000 of 4000 left, 1500 asked for",
/// );
/// ledger.settle(reservation, Some(Amount::tokens(2_000)));
/// assert_eq!(ledger.tally(session).unwrap().spent.tokens, 2_000);
/// # Ok::<_, mainstem_policy::Exceeded>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ledger {
    accounts: BTreeMap<AccountId, Account>,
    next: AccountId,
}

/// A reserved amount. Return it to its ledger with [`settle`](Ledger::settle) or
/// [`release`](Ledger::release): a dropped one stays reserved, so that a call that was sent and
/// forgotten is never spent twice.
#[derive(Debug)]
#[must_use = "dropped, it stays set aside; settle or release it"]
pub struct Reservation {
    account: AccountId,
    amount: Amount,
}

#[derive(Clone, Debug)]
struct Account {
    label: String,
    parent: Option<AccountId>,
    budget: Budget,
    opened: Duration,
    is_closed: bool,
    /// The number of children and reservations, for which a closed account is retained.
    dependents: u64,
    tally: Tally,
}

impl Ledger {
    /// Creates a ledger with its first account. The label is its name in errors.
    #[must_use]
    pub fn new(label: impl Into<String>, budget: Budget, now: Duration) -> (Self, AccountId) {
        let mut ledger = Self { accounts: BTreeMap::new(), next: AccountId(0) };
        let root = ledger.add(Account::new(label.into(), None, budget, now));
        (ledger, root)
    }

    /// Opens an account below another. Limits wider than those above have no effect.
    ///
    /// # Errors
    /// [`Exceeded::Closed`] if the account is closed.
    pub fn open(
        &mut self,
        parent: AccountId,
        label: impl Into<String>,
        budget: Budget,
        now: Duration,
    ) -> Result<AccountId, Exceeded> {
        self.live(parent)?;
        self.depend(parent);
        Ok(self.add(Account::new(label.into(), Some(parent), budget, now)))
    }

    /// Reserves an amount in the account and in all above, or in none.
    ///
    /// # Errors
    /// The innermost budget that it does not fit, with what is left there; or a cost budget, if the
    /// price is unknown.
    pub fn reserve(
        &mut self,
        account: AccountId,
        amount: Amount,
        now: Duration,
    ) -> Result<Reservation, Exceeded> {
        self.live(account)?;
        self.chain(account).try_for_each(|account| account.check(&amount, now))?;
        self.each(account, |account| account.tally.hold(&amount));
        self.depend(account);
        Ok(Reservation { account, amount })
    }

    /// Replaces a reservation by the actual amount, even if that exceeds the limits: it has been
    /// spent. Without one, the estimate counts as spent, and as [estimated](Tally::estimated).
    pub fn settle(&mut self, reservation: Reservation, actual: Option<Amount>) {
        let Reservation { account, amount } = reservation;
        self.each(account, |account| {
            account.tally.give_back(&amount);
            account.tally.spend(&amount, actual);
        });
        self.drop_dependent(account);
    }

    /// Releases a reservation that was not spent.
    pub fn release(&mut self, reservation: Reservation) {
        let Reservation { account, amount } = reservation;
        self.each(account, |account| account.tally.give_back(&amount));
        self.drop_dependent(account);
    }

    /// Adds spending that this ledger has not seen, such as that of an earlier process, to the
    /// account and all above, even beyond their budgets.
    pub fn count(&mut self, account: AccountId, spent: Spend) {
        self.each(account, |account| account.tally.spent = account.tally.spent.plus(spent));
    }

    /// Closes an account: it and the accounts below refuse reservations and new accounts. Its
    /// spending still counts above. It is removed once it has no reservations and no open accounts
    /// below.
    pub fn close(&mut self, account: AccountId) {
        if let Some(account) = self.accounts.get_mut(&account) {
            account.is_closed = true;
        }
        self.forget(account);
    }

    /// Returns the spent and reserved amounts of an account; `None` once it is removed.
    #[must_use]
    pub fn tally(&self, account: AccountId) -> Option<&Tally> {
        Some(&self.accounts.get(&account)?.tally)
    }

    /// Returns the most that could be reserved now, over all budgets from this one up. Time is the
    /// remaining time, rounded down to seconds.
    #[must_use]
    pub fn left(&self, account: AccountId, now: Duration) -> Budget {
        self.chain(account).map(|account| account.left(now)).fold(Budget::default(), Budget::tighter)
    }

    fn live(&self, account: AccountId) -> Result<(), Exceeded> {
        let is_open =
            self.accounts.contains_key(&account) && self.chain(account).all(|account| !account.is_closed);
        if is_open { Ok(()) } else { Err(Exceeded::Closed) }
    }

    /// Returns the account and those above, innermost first.
    fn chain(&self, from: AccountId) -> impl Iterator<Item = &Account> {
        iter::successors(self.accounts.get(&from), |account| self.accounts.get(&account.parent?))
    }

    fn each(&mut self, from: AccountId, mut change: impl FnMut(&mut Account)) {
        let mut next = Some(from);
        while let Some(account) = next.and_then(|id| self.accounts.get_mut(&id)) {
            change(account);
            next = account.parent;
        }
    }

    fn add(&mut self, account: Account) -> AccountId {
        let id = self.next;
        self.next = AccountId(id.0 + 1);
        self.accounts.insert(id, account);
        id
    }

    fn depend(&mut self, on: AccountId) {
        if let Some(account) = self.accounts.get_mut(&on) {
            account.dependents += 1;
        }
    }

    fn drop_dependent(&mut self, of: AccountId) {
        if let Some(account) = self.accounts.get_mut(&of) {
            account.dependents = account.dependents.saturating_sub(1);
        }
        self.forget(of);
    }

    fn forget(&mut self, account: AccountId) {
        let is_over = |account: &Account| account.is_closed && account.dependents == 0;
        if self.accounts.get(&account).is_some_and(is_over)
            && let Some(Account { parent: Some(parent), .. }) = self.accounts.remove(&account)
        {
            self.drop_dependent(parent);
        }
    }
}

impl Reservation {
    /// Returns the reserved amount.
    #[must_use]
    pub fn amount(&self) -> Amount {
        self.amount
    }
}

impl Account {
    fn new(label: String, parent: Option<AccountId>, budget: Budget, opened: Duration) -> Self {
        Self { label, parent, budget, opened, is_closed: false, dependents: 0, tally: Tally::default() }
    }

    fn left(&self, now: Duration) -> Budget {
        self.budget.left(&self.tally, now.saturating_sub(self.opened))
    }

    fn check(&self, amount: &Amount, now: Duration) -> Result<(), Exceeded> {
        self.budget.check(&self.label, &self.tally, now.saturating_sub(self.opened), amount)
    }
}

#[cfg(test)]
mod tests;
