//! Budgets: a model call is reserved before it is made, and counted in all accounts above it.

pub(crate) mod account;
mod estimate;
pub(crate) mod metered;

use std::sync::Arc;

use mainstem_event::CancelReason;
use mainstem_policy::{Amount, Budget, Spend};
use mainstem_react::{AgentError, RunContext};

use crate::{
    budget::{account::Account, metered::refused},
    fleet::Fleet,
    member::Member,
    spawn::deadline::Deadline,
};

impl Fleet {
    /// Returns what the context's run has spent; nothing if no budget covers it.
    pub fn spent_by(&self, cx: &RunContext) -> Spend {
        self.account(cx).spent()
    }

    /// Returns the context of a run with the deadline that a budget of time gives it.
    pub fn with_deadline(&self, cx: RunContext) -> RunContext {
        match self.account(&cx).time_left() {
            Some(left) => cx.clone().with_deadline(cx.now().after(left)),
            None => cx,
        }
    }

    /// Lets the time of a run pass while it is polled, and stops the run when a budget of time is
    /// used up; `None` if no budget limits time.
    pub fn time_run(&self, cx: RunContext) -> Option<impl Future<Output = ()> + Send + 'static> {
        let account = self.account(&cx);
        let mut deadline = Deadline::new(account.time_left()?);
        Some(async move {
            while let Some(passed) = deadline.pass().await {
                account.pass(passed);
            }
            let over = account.reserve(|| Amount::tokens(0)).err().map(|over| over.to_string());
            let why = over.unwrap_or_else(|| "the time budget is used up".to_owned());
            cx.cancellation().cancel(CancelReason::Budget { why: why.into() });
        })
    }

    /// Returns what the budgets leave to an agent; no limits without a budget.
    pub fn budget_left(cx: &RunContext) -> Budget {
        Member::of(cx).map_or_else(|_| Budget::default(), |member| member.account.left())
    }

    /// Checks that a budget has an amount left, before an agent that runs elsewhere spends it.
    ///
    /// # Errors
    /// The budget that does not.
    pub fn check_budget(cx: &RunContext, amount: Amount) -> Result<(), AgentError> {
        let Ok(member) = Member::of(cx) else { return Ok(()) };
        member.account.reserve(|| amount).map(drop).map_err(refused)
    }

    /// Counts what an agent that runs elsewhere has spent, even beyond the budgets.
    pub fn count_spent(cx: &RunContext, amount: Amount) {
        if let Ok(member) = Member::of(cx)
            && member.account.is_limited()
        {
            member.account.count(amount);
        }
    }

    fn account(&self, cx: &RunContext) -> Arc<Account> {
        let session = || self.spending.session().clone();
        Member::of(cx).map_or_else(|_| session(), |member| member.account.clone())
    }
}
