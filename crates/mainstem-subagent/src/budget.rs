//! Budgets: a model call is reserved before it is made, and counted in all accounts above it.

pub(crate) mod account;
mod estimate;
pub(crate) mod metered;

use std::sync::Arc;

use mainstem_event::CancelReason;
use mainstem_policy::{Amount, Spend};
use mainstem_react::RunContext;

use crate::{budget::account::Account, fleet::Fleet, member::Member, spawn::deadline::Deadline};

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

    fn account(&self, cx: &RunContext) -> Arc<Account> {
        let session = || self.spending.session().clone();
        Member::of(cx).map_or_else(|_| session(), |member| member.account.clone())
    }
}
