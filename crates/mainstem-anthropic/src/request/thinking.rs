//! The thinking effort in the form of the API: [adaptive with an effort][adaptive] since
//! Claude 4.6, with a [budget][manual] until then.
//!
//! Which of the two a model takes is left to the caller, who sets an effort, a budget or both: a
//! table of models would be wrong by the next one.
//!
//! [adaptive]: https://platform.claude.com/docs/en/build-with-claude/thinking
//! [manual]: https://platform.claude.com/docs/en/build-with-claude/extended-thinking

use mainstem_model::{ModelRequest, ToolChoice};
use serde_json::{Value, json};

use crate::dialect::Dialect;

/// The smallest [budget][manual] that the API takes.
///
/// [manual]: https://platform.claude.com/docs/en/build-with-claude/extended-thinking
const MIN_BUDGET: u32 = 1024;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Thinking<'a> {
    /// As the model does by default.
    Unsaid,
    Off,
    Adaptive {
        effort: &'a str,
    },
    Manual {
        budget: u32,
    },
}

impl<'a> Thinking<'a> {
    pub(super) fn of(request: &'a ModelRequest, dialect: &Dialect) -> Self {
        let effort = request.options.effort.as_deref().map(str::trim).filter(|effort| !effort.is_empty());
        let is_taken = effort.is_none() || !dialect.no_budget;
        match (request.options.thinking_budget.filter(|_| is_taken), effort) {
            (Some(0), _) | (None, Some("none")) => Self::Off,
            // Refused beside a forced call, which adaptive thinking is not.
            (Some(_), _) if is_forced(request) => Self::Unsaid,
            (Some(budget), _) => Self::Manual { budget: budget.max(MIN_BUDGET) },
            // The lowest effort of other vendors.
            (None, Some("minimal")) if !dialect.no_effort => Self::Adaptive { effort: "low" },
            (None, Some(effort)) if !dialect.no_effort => Self::Adaptive { effort },
            (None, _) => Self::Unsaid,
        }
    }

    pub(super) fn is_on(self) -> bool {
        matches!(self, Self::Adaptive { .. } | Self::Manual { .. })
    }

    pub(super) fn budget(self) -> u32 {
        if let Self::Manual { budget } = self { budget } else { 0 }
    }

    /// Checks that a budget, which is raised to [`MIN_BUDGET`], leaves room for an answer.
    pub(super) fn check_room(self, max_output_tokens: Option<u32>) -> Result<(), String> {
        match (self, max_output_tokens) {
            (Self::Manual { budget }, Some(most)) if budget >= most => Err(format!(
                "max_output_tokens must be above thinking_budget, which is at least {MIN_BUDGET} at Anthropic: {most} is not \
                 above {budget}"
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn effort(self) -> Option<&'a str> {
        if let Self::Adaptive { effort } = self { Some(effort) } else { None }
    }

    /// Returns the `thinking` of a request. By default newer models show nothing of it.
    pub(super) fn config(self) -> Option<Value> {
        match self {
            Self::Unsaid => None,
            Self::Off => Some(json!({ "type": "disabled" })),
            Self::Adaptive { .. } => Some(json!({ "type": "adaptive", "display": "summarized" })),
            Self::Manual { budget } => {
                Some(json!({ "type": "enabled", "budget_tokens": budget, "display": "summarized" }))
            }
        }
    }
}

fn is_forced(request: &ModelRequest) -> bool {
    let forced = matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Tool(_));
    forced && !request.tools.is_empty()
}
