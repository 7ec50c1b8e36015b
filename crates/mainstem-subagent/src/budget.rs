//! What the agents of a session may still spend: accounts within accounts, found through each
//! agent's context.

mod estimate;

use std::{
    collections::HashMap,
    fmt, iter,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::BoxFuture;
use mainstem_event::{CancelReason, EventSource};
use mainstem_message::{AgentKey, Failure, Usage};
use mainstem_model::ModelRequest;
use mainstem_policy::{AccountId, Amount, Cost, Exceeded, Ledger, Limits, Reservation, Spend};
use mainstem_react::{AgentError, Answer, Middleware, NextModel, RunContext};
use mainstem_spec::AgentSpec;

use crate::{crew::Crew, error::SpawnError, fleet::Fleet, member::Member, spawn::deadline::Deadline};

/// The books of a session.
pub(crate) struct Spending {
    session: Arc<Account>,
}

/// Where the calls of an agent are counted, and those of all below it: the session's account, a
/// run's, or that of a child with a budget of its own. Part of the [`Member`] of the agent; it is
/// closed when the last context that has it is dropped.
pub(crate) struct Account {
    books: Arc<Mutex<Books>>,
    id: AccountId,
    above: Option<Arc<Self>>,
    /// Whose it alone is.
    key: Option<AgentKey>,
    limits: Limits,
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

/// Holds an agent to the budget that covers it, wherever it was built.
pub(crate) struct Metered;

/// An amount set aside; given back on drop.
#[must_use]
pub(crate) struct Reserved(Option<(Arc<Account>, Reservation)>);

impl Fleet {
    /// Opens the account of a run of this crew, for its context.
    pub(crate) fn open_run(&self, crew: &Crew, limits: Limits) -> Arc<Account> {
        let root = crew.catalog.get(crew.root.id());
        let declared = root.map_or_else(Limits::default, |root| declared(&root.spec));
        self.spending.session.open("the run", None, limits.tighter(declared))
    }

    /// What the context's run has spent, as far as a budget covers it; nothing if there is none.
    pub fn spent_by(&self, cx: &RunContext) -> Spend {
        self.spending.of_run(cx)
    }

    /// Returns the context of a run with the deadline that a budget of time gives it.
    pub fn with_deadline(&self, cx: RunContext) -> RunContext {
        match self.spending.of(&cx).time_left() {
            Some(left) => cx.clone().with_deadline(cx.now().after(left)),
            None => cx,
        }
    }

    /// Lets the time of a run pass while it is polled, and stops the run when that of a budget is
    /// used up; `None` if no budget is of time.
    pub fn time_run(&self, cx: RunContext) -> Option<impl Future<Output = ()> + Send + 'static> {
        let account = self.spending.of(&cx);
        let mut deadline = Deadline::new(account.time_left()?);
        Some(async move {
            while let Some(passed) = deadline.pass().await {
                account.books().clock += passed;
            }
            let over = account.reserve(|| Amount::tokens(0)).err().map(|over| over.to_string());
            let why = over.unwrap_or_else(|| "the time budget is used up".to_owned());
            cx.cancellation().cancel(CancelReason::Budget { why: why.into() });
        })
    }

    /// Sets aside what the start of an agent counts.
    pub(crate) fn reserve_spawn(&self, cx: &RunContext) -> Result<Reserved, SpawnError> {
        Ok(self.spending.of(cx).reserve(Amount::spawn)?)
    }
}

/// A model call, if it fits the budget. It counts as estimated before, and as the service counted
/// it after.
async fn paid_from(
    member: &Member,
    cx: &RunContext,
    request: ModelRequest,
    next: NextModel<'_>,
) -> Result<Answer, AgentError> {
    let amount = |usage: Usage| Amount::of(&usage, cx.cost(next.model_name(), &usage).map(Cost::from_micros));
    let reserved = member.account.reserve(|| amount(estimate::of(&request))).map_err(refused)?;
    let answer = next.run(&cx.clone().with_attachment(member.paid()), request).await;
    match &answer {
        Ok(answer) => reserved.settle(answer.usage.map(amount)),
        Err(error) if is_free(error) => drop(reserved),
        Err(_) => reserved.settle(None),
    }
    answer
}

/// What an agent's spec says that it may spend.
fn declared(spec: &AgentSpec) -> Limits {
    let tokens = spec.max_tokens_total;
    tokens.map_or_else(Limits::default, |tokens| Limits::default().with_tokens(tokens))
}

impl Middleware for Metered {
    fn on_model_call<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        cx: &'life1 RunContext,
        request: ModelRequest,
        next: NextModel<'life2>,
    ) -> BoxFuture<'async_trait, Result<Answer, AgentError>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        match Member::of(cx) {
            Ok(member) if member.account.is_limited() && !member.is_paid => {
                Box::pin(paid_from(member, cx, request, next))
            }
            _ => next.run(cx, request),
        }
    }
}

fn refused(error: Exceeded) -> AgentError {
    AgentError::Refused(Failure::new("budget", error.to_string()))
}

/// Whether a call that failed cost nothing: it was stopped, or refused before it began.
fn is_free(error: &AgentError) -> bool {
    matches!(error, AgentError::Cancelled(_)) || error.model_error().is_some_and(|error| error.is_refusal())
}

impl Spending {
    pub(crate) fn new(limits: Limits) -> Self {
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

    /// What the context's run has spent, as far as a budget covers it.
    pub(crate) fn of_run(&self, cx: &RunContext) -> Spend {
        let account = self.of(cx);
        account.books().ledger.tally(account.id).map_or_else(Spend::default, |tally| tally.spent)
    }

    fn of(&self, cx: &RunContext) -> Arc<Account> {
        Member::of(cx).map_or_else(|_| self.session.clone(), |member| member.account.clone())
    }

    /// Keeps what a child has spent, for its next turn.
    pub(crate) fn ends_turn(&self, cx: &RunContext, key: &AgentKey) {
        let account = self.of(cx);
        if account.key.as_ref() != Some(key) {
            return;
        }
        let books = &mut *account.books();
        let spent = books.ledger.tally(account.id).map_or(0, |tally| tally.spent.tokens);
        *books.former.entry(key.clone()).or_default() += spent;
    }
}

impl Default for Spending {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Account {
    fn open(self: &Arc<Self>, label: &str, key: Option<AgentKey>, limits: Limits) -> Arc<Self> {
        let books = &mut *self.books();
        let opened = books.clock;
        #[expect(clippy::expect_used, reason = "it is closed on drop, and the one below holds it")]
        let id = books.ledger.open(self.id, label, limits, opened).expect("an account that is held is open");
        Arc::new(Self { books: self.books.clone(), id, above: Some(self.clone()), key, limits, opened })
    }

    /// The account for a turn of a child: this one, or below it one of its own.
    pub(crate) fn for_child(self: &Arc<Self>, child: &EventSource, spec: &AgentSpec) -> Arc<Self> {
        let limits = declared(spec);
        let Some(tokens) = limits.tokens else { return self.clone() };
        let former = self.books().former.get(&child.agent_key).copied().unwrap_or_default();
        let limits = limits.with_tokens(tokens.saturating_sub(former));
        self.open(&child.agent_id, Some(child.agent_key.clone()), limits)
    }

    /// Sets an amount aside, here and in all accounts above. Where nothing is limited nothing is
    /// counted.
    fn reserve(self: &Arc<Self>, amount: impl FnOnce() -> Amount) -> Result<Reserved, Exceeded> {
        if !self.is_limited() {
            return Ok(Reserved(None));
        }
        let (amount, books) = (amount(), &mut *self.books());
        let reservation = books.ledger.reserve(self.id, amount, books.clock)?;
        Ok(Reserved(Some((self.clone(), reservation))))
    }

    fn is_limited(&self) -> bool {
        self.chain().any(|account| account.limits != Limits::default())
    }

    fn time_left(&self) -> Option<Duration> {
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
    /// Replaces it by what came back; without that the estimate counts as spent, and is marked.
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
