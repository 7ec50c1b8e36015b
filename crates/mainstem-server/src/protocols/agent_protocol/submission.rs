//! What a caller submits, as a run of ours, and what of it is needed again.

use std::sync::Arc;

use mainstem::{
    encode::agent_protocol::{Context, DenyRule, Detail, SUBMISSION, Submit},
    event::{AgentEvent, Background},
    message::{RunId, SessionId},
    policy::{Effect, Rule, RuleSet},
    session::FoundRun,
};
use mainstem_api::{Code, NewRun, RunOptions};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::{
    app::App,
    caller::Caller,
    problem::Problem,
    runs::{NewRunOf, until_recorded},
};

/// The agent of a submission that names none.
const DEFAULT: &str = "default";

/// Returns the id of the run of a caller's task. Ids of tasks are the callers', and one tenant's do
/// not meet those of another.
pub(super) fn run_id(caller: &Caller, task: &str) -> RunId {
    let tenant = caller.tenant.as_ref().map_or("", |tenant| tenant.as_str());
    let hash = Sha256::new().chain_update(tenant).chain_update([0]).chain_update(task).finalize();
    RunId::from_lossy(format!(
        "task-{}",
        hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>()
    ))
}

/// Begins the run of a task: in the session that it continues, or in one of its own, which has the
/// id of the task.
pub(super) async fn begin(app: &Arc<App>, caller: &Caller, id: &str, task: Submit) -> Result<(), Problem> {
    let run = run_id(caller, id);
    let agent = task.agent_id.filter(|agent| !agent.trim().is_empty());
    let context = task.context.unwrap_or_default();
    let session = match &context.session_id {
        Some(session) => session.clone(),
        None if id.parse::<SessionId>().is_ok() => id.to_owned(),
        None => run.as_str().to_owned(),
    };
    let request = NewRun {
        agent: leader(app, caller, agent.clone()),
        // An earlier task of the session may be ending.
        queue: true,
        ..NewRun::new(task.input.unwrap_or_default()).with_options(options(context, agent)?)
    };
    let request = NewRunOf { session: &session, run: request, key: None, is_read: false };
    until_recorded(&request.begin_as(app, caller, run).await?.run).await;
    Ok(())
}

/// Returns the agent that leads the run. A server of one agent runs it for any id, as AgentScope's
/// does: to the caller it is a name of its own.
fn leader(app: &App, caller: &Caller, agent: Option<String>) -> Option<String> {
    let own = caller.harness.agents().root().id().to_string();
    agent.filter(|agent| *agent != own && *agent != DEFAULT && !app.served.agents.is_empty())
}

fn options(context: Context, agent: Option<String>) -> Result<RunOptions, Problem> {
    let detail = Detail::parse(context.detail.as_deref());
    let mut attributes = context.attributes.unwrap_or_default();
    attributes.insert(
        SUBMISSION.to_owned(),
        json!({
            "agent_id": agent, "detail": detail.as_str(), "parent_session_id": context.parent_session_id,
        }),
    );
    let options = RunOptions {
        user: context.user_id,
        attributes,
        // A task is over when all that it has started is.
        background: Background::Wait,
        ..RunOptions::default()
    };
    denied(options, &context.deny_rules)
}

/// Returns the options with the rules of the caller, which deny calls.
fn denied(options: RunOptions, rules: &[DenyRule]) -> Result<RunOptions, Problem> {
    if rules.is_empty() {
        return Ok(options);
    }
    let rules = rules.iter().map(denial).collect::<Result<Vec<_>, _>>()?;
    let set = rules.into_iter().fold(RuleSet::default(), RuleSet::with_rule);
    Ok(RunOptions { permissions: set.into(), ..options })
}

/// Returns a rule of the protocol as one of ours: about `tool`, or `tool(content)`.
fn denial(rule: &DenyRule) -> Result<Rule, Problem> {
    let bad = |detail: String| Problem::new(Code::BadBody, detail);
    let is_denial = rule.behavior.as_deref().is_none_or(|behavior| behavior.eq_ignore_ascii_case("deny"));
    if rule.tool_name.trim().is_empty() || !is_denial {
        return Err(bad("each of deny_rules has a tool_name, and denies".to_owned()));
    }
    let pattern = match rule.rule_content.as_deref().filter(|content| !content.is_empty()) {
        Some(content) => format!("{}({content})", rule.tool_name),
        None => rule.tool_name.clone(),
    };
    Rule::new(Effect::Deny, &pattern).map_err(|error| bad(format!("deny_rules: {error}")))
}

/// Returns the first event of a task, in which its submission is recorded; `None` if it has not
/// begun.
pub(super) async fn first_event(found: &FoundRun) -> Option<AgentEvent> {
    let mut cursor = found.session().log().committed_from(found.first());
    loop {
        let event = cursor.at_hand().await?;
        if event.run_id() == Some(found.id()) {
            return Some(event);
        }
    }
}
