//! Holds the model calls of an agent to the budget that covers it.

use futures_util::future::BoxFuture;
use mainstem_message::{Failure, Usage};
use mainstem_model::ModelRequest;
use mainstem_policy::{Amount, Cost, Exceeded};
use mainstem_react::{AgentError, Answer, Middleware, NextModel, RunContext};

use crate::{budget::estimate, member::Member};

/// The innermost middleware of an agent, wherever it was built.
pub(crate) struct Metered;

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

/// Makes a model call if it fits the budget. It counts as estimated until the provider's count is
/// known.
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
        Ok(answer) => {
            let cost = answer.cost().map(Cost::from_micros);
            reserved.settle(answer.usage.map(|usage| Amount::of(&usage, cost)));
        }
        Err(error) if is_free(error) => drop(reserved),
        Err(_) => reserved.settle(None),
    }
    answer
}

pub(super) fn refused(error: Exceeded) -> AgentError {
    AgentError::Refused(Failure::new("budget", error.to_string()))
}

/// Whether a call that failed cost nothing: it was stopped, or refused before it began.
fn is_free(error: &AgentError) -> bool {
    matches!(error, AgentError::Cancelled(_)) || error.model_error().is_some_and(|error| error.is_refusal())
}
