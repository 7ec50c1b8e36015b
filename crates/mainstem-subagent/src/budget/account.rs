//! Accounts within accounts: what the agents of a session may still spend.

use std::{
    collections::HashMap,
    fmt, iter,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use mainstem_event::EventSource;
use mainstem_message::AgentKey;
use mainstem_policy::{AccountId, Amount, Budget, Cost, Exceeded, Ledger, Reservation, Spend};
use mainstem_spec::AgentSpec;

/// The accounts of a session.
pub(crate) struct Spending {
    session: Arc<Account>,
}

/// Where the calls of an agent and of all below it are counted: the session's account, a run's, or
/// that of a child with a budget of its own. It is closed on drop.
pub(crate) struct Account {
    books: Arc<Mutex<Books>>,
    id: AccountId,
    above: Option<Arc<Self>>,
    /// The child that it is for, if it is for one.
    key: Option<AgentKey>,
    limits: Budget,
    opened: Duration,
}

/// What a session has spent in earlier processes.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Spent {
    /// Tokens, money and children.
    pub amount: Spend,
    /// The time of its runs.
    pub time: Duration,
    /// The tokens of each child, with all below it.
    pub former: HashMap<AgentKey, u64>,
}

struct Books {
    ledger: Ledger,
    /// The time for which runs with a time budget were polled.
    clock: Duration,
    /// The tokens that children with a budget spent in their former turns.
    former: HashMap<AgentKey, u64>,
}

/// An amount set aside; given back on drop.
#[must_use]
pub(crate) struct Reserved(Option<(Arc<Account>, Reservation)>);

/// Returns the budget that an agent's spec declares.
fn declared(spec: &AgentSpec) -> Budget {
    let tokens = spec.max_tokens_total;
    tokens.map_or_else(Budget::default, |tokens| Budget::default().with_tokens(tokens))
}

impl Spending {
    pub(crate) fn new(limits: Budget) -> Self {
        let (ledger, id) = Ledger::new("the session", limits, Duration::ZERO);
        let books = Books { ledger, clock: Duration::ZERO, former: HashMap::new() };
        let books = Arc::new(Mutex::new(books));
        Self {
            session: Arc::new(Account { books, id, above: None, key: None, limits, opened: Duration::ZERO }),
        }
    }

    /// Counts what the session has spent in earlier processes.
    pub(crate) fn restore(&self, spent: &Spent) {
        let books = &mut *self.session.books();
        books.ledger.count(self.session.id, spent.amount);
        books.clock = spent.time;
        books.former.clone_from(&spent.former);
    }

    /// Opens the account of a run; its root may declare a budget, too.
    pub(crate) fn open_run(&self, root: Option<&AgentSpec>, limits: Budget) -> Arc<Account> {
        let declared = root.map_or_else(Budget::default, declared);
        self.session.open("the run", None, limits.tighter(declared))
    }

    /// Returns the session's own account.
    pub(crate) fn session(&self) -> &Arc<Account> {
        &self.session
    }
}

impl Default for Spending {
    fn default() -> Self {
        Self::new(Budget::default())
    }
}

impl Account {
    fn open(self: &Arc<Self>, label: &str, key: Option<AgentKey>, limits: Budget) -> Arc<Self> {
        let books = &mut *self.books();
        let opened = books.clock;
        #[expect(clippy::expect_used, reason = "it is closed on drop, and the one below holds it")]
        let id = books.ledger.open(self.id, label, limits, opened).expect("an account that is held is open");
        Arc::new(Self { books: self.books.clone(), id, above: Some(self.clone()), key, limits, opened })
    }

    /// Returns the account for a turn of a child: this one, or one of its own below it.
    pub(crate) fn for_child(self: &Arc<Self>, child: &EventSource, spec: &AgentSpec) -> Arc<Self> {
        let limits = declared(spec);
        let Some(tokens) = limits.tokens else { return self.clone() };
        let former = self.books().former.get(&child.agent_key).copied().unwrap_or_default();
        let limits = limits.with_tokens(tokens.saturating_sub(former));
        self.open(&child.agent_id, Some(child.agent_key.clone()), limits)
    }

    /// Sets an amount aside, here and in all accounts above. Without a limit nothing is counted.
    ///
    /// # Errors
    /// One of the accounts has less left.
    pub(crate) fn reserve(self: &Arc<Self>, amount: impl FnOnce() -> Amount) -> Result<Reserved, Exceeded> {
        if !self.is_limited() {
            return Ok(Reserved(None));
        }
        let (amount, books) = (amount(), &mut *self.books());
        let reservation = books.ledger.reserve(self.id, amount, books.clock)?;
        Ok(Reserved(Some((self.clone(), reservation))))
    }

    /// Returns what is left, over all budgets from this one up.
    pub(crate) fn left(&self) -> Budget {
        let books = self.books();
        books.ledger.left(self.id, books.clock)
    }

    /// Counts what was spent elsewhere, even beyond the limits.
    pub(crate) fn count(&self, amount: Amount) {
        let mut spent = Spend::default();
        (spent.tokens, spent.spawns) = (amount.tokens, amount.spawns);
        spent.cost = amount.cost.unwrap_or(Cost::ZERO);
        self.books().ledger.count(self.id, spent);
    }

    /// Returns `true` if a budget covers the account.
    pub(crate) fn is_limited(&self) -> bool {
        self.chain().any(|account| account.limits != Budget::default())
    }

    /// Returns the time that the budgets leave; `None` if none limits time.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let clock = self.books().clock;
        let left = |account: &Self| {
            let limit = Duration::from_secs(account.limits.time_seconds?);
            Some(limit.saturating_sub(clock.saturating_sub(account.opened)))
        };
        self.chain().filter_map(left).min()
    }

    fn chain(&self) -> impl Iterator<Item = &Self> {
        iter::successors(Some(self), |account| account.above.as_deref())
    }

    /// Returns what was spent from it.
    pub(crate) fn spent(&self) -> Spend {
        self.books().ledger.tally(self.id).map_or_else(Spend::default, |tally| tally.spent)
    }

    /// Lets time pass on the session's clock.
    pub(crate) fn pass(&self, time: Duration) {
        self.books().clock += time;
    }

    /// Remembers what a child has spent for its next turn, if this is its own account.
    pub(crate) fn end_turn(&self, key: &AgentKey) {
        if self.key.as_ref() != Some(key) {
            return;
        }
        let books = &mut *self.books();
        let spent = books.ledger.tally(self.id).map_or(0, |tally| tally.spent.tokens);
        *books.former.entry(key.clone()).or_default() += spent;
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let id = self.id;
        self.books().ledger.close(id);
    }
}

impl Reserved {
    /// Replaces it by the actual amount; without one the estimate counts as spent, and is marked.
    pub(crate) fn settle(mut self, actual: Option<Amount>) {
        if let Some((account, reservation)) = self.0.take() {
            account.books().ledger.settle(reservation, actual);
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some((account, reservation)) = self.0.take() {
            account.books().ledger.release(reservation);
        }
    }
}

impl fmt::Debug for Spending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.session.fmt(f)
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("id", &self.id).field("limits", &self.limits).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
