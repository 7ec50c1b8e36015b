//! What a request for a run may ask for: its input, its options, and the agent that leads it.

use std::sync::Arc;

use mainstem::{
    BuildError, declarations::LeaderError, policy::Tenant, prelude::RunOptions, react::OutputSchema,
    session::Session,
};
use mainstem_api::{self as api, Code, Input, NewRun};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::{
    app::{App, shutting_down},
    caller::Caller,
    problem::Problem,
};

/// The most rules of a caller: each call of a tool is held against all of them.
const MAX_RULES: usize = 1_024;

/// Checks the options of a request and converts them.
pub(super) async fn options(
    options: api::RunOptions,
    app: &App,
    caller: &Caller,
) -> Result<RunOptions, Problem> {
    let limits = caller.harness.limits();
    within("max_depth", options.max_depth.map(usize::from), 0, limits.max_depth.into())?;
    within("max_children", options.max_children, 1, limits.max_children)?;
    within("permissions", Some(options.permissions.count()), 0, MAX_RULES)?;
    let schema = options.output_schema.clone();
    let options = RunOptions::from(options);
    match schema {
        Some(schema) => Ok(options.with_output(compile(schema, app, &caller.tenant).await?)),
        None => Ok(options),
    }
}

/// Compiles a caller's schemas on a thread for blocking work, for one request of each tenant at a
/// time: it takes a processor's time.
pub(crate) async fn compile_with<T: Send + 'static>(
    app: &App,
    tenant: &Tenant,
    compile: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let permit = app.schema_permits.acquire(tenant).await;
    let work = move || {
        // Held until the end, also if the caller disconnects.
        let _permit = permit;
        compile()
    };
    spawn_blocking(work).await.map_err(|_| shutting_down())
}

async fn compile(schema: Value, app: &App, tenant: &Tenant) -> Result<OutputSchema, Problem> {
    let compiled = compile_with(app, tenant, || OutputSchema::new(schema)).await?;
    compiled.map_err(|error| {
        let detail = error.to_string();
        let errors = json!([{ "pointer": "/options/output_schema", "detail": detail }]);
        let code = if error.limit().is_some() { Code::SchemaLimit } else { Code::BadBody };
        let problem = Problem::new(code, detail).with("errors", errors);
        match error.limit() {
            Some(limit) => problem.with("limit", limit.name()),
            None => problem,
        }
    })
}

/// Refuses a value outside the server's limits.
fn within(name: &str, value: Option<usize>, least: usize, most: usize) -> Result<(), Problem> {
    if value.is_none_or(|value| (least..=most).contains(&value)) {
        return Ok(());
    }
    let detail = format!("`{name}` must be from {least} to {most}, the limit of this server");
    Err(bad_body(&format!("/options/{name}"), &detail, detail.clone()))
}

/// Returns the requested model, which callers may choose.
pub(super) fn model(app: &App, model: Option<String>) -> Result<Option<Arc<str>>, Problem> {
    let Some(model) = model else { return Ok(None) };
    if app.served.models.contains(&model) {
        return Ok(Some(model.into()));
    }
    let allowed: Vec<_> = app.served.models.iter().map(String::as_str).collect();
    let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
    let detail = format!("this server lets callers choose {allowed}, not {model:?}");
    Err(Problem::new(Code::UnknownModel, detail))
}

/// Checks the model of the turn that a run resumes: callers may no longer choose what they once
/// could.
pub(super) fn resumed_model(app: &App, session: &Session, options: &RunOptions) -> Result<(), Problem> {
    let runs = session.runs();
    let Some(was) = runs.last().map(|run| &run.settings) else { return Ok(()) };
    let is_inherited = options.model.is_none() && (options.agent.is_none() || options.agent == was.agent);
    let inherited = was.model.as_deref().filter(|_| is_inherited);
    model(app, inherited.map(str::to_owned)).map(drop)
}

/// Returns the requested leader, which can lead with this model; `None` for the harness's own.
pub(super) async fn leader(
    app: &App,
    caller: &Caller,
    agent: Option<String>,
    model: Option<&str>,
) -> Result<Option<Arc<str>>, Problem> {
    let own = caller.harness.agents().root().id().to_string();
    let agent = agent.filter(|agent| *agent != own);
    if agent.is_none() && model.is_none() {
        return Ok(None);
    }
    if let Some(agent) = agent.as_ref().filter(|agent| !app.served.agents.contains(*agent)) {
        let known: Vec<_> = std::iter::once(&own).chain(&app.served.agents).map(String::as_str).collect();
        let detail = format!("this server runs {}, not {agent:?}", known.join(", "));
        return Err(Problem::new(Code::UnknownAgent, detail));
    }
    let named = format!(
        "agent {:?} can't lead a run at the moment; the server's log says why",
        agent.as_ref().unwrap_or(&own)
    );
    let prepared = caller.harness.prepare_leader(agent.as_deref(), model).await;
    prepared.map(|()| agent.map(Arc::from)).map_err(|error| match error {
        BuildError::Leader(LeaderError::Unknown { .. }) => {
            Problem::new(Code::UnknownAgent, error.to_string())
        }
        BuildError::Leader(LeaderError::OnlySpawned { .. } | LeaderError::RunsElsewhere { .. }) => {
            Problem::new(Code::OnlySpawned, error.to_string())
        }
        // The cause may name files, which are the operator's to know.
        _ => {
            tracing::error!(%error, "an agent can't lead a run");
            Problem::new(Code::AgentUnusable, named)
        }
    })
}

/// Checks what a run is to begin with: an input that a user may send, the last turn, or nothing.
pub(super) fn input(app: &App, wanted: &NewRun) -> Result<(), Problem> {
    if !wanted.is_valid() {
        return Err(bad_body("/input", NewRun::ONE_OF, NewRun::ONE_OF.into()));
    }
    let Some(input) = &wanted.input else { return Ok(()) };
    content(input)?;
    role(app, input)
}

/// Refuses blocks that are not a user's: a tool's result would speak for a tool.
fn content(input: &Input) -> Result<(), Problem> {
    let Some((pointer, detail)) = input.problem() else { return Ok(()) };
    let title = format!("the body does not fit, at {pointer:?}: {detail}");
    Err(bad_body(&pointer, detail, title))
}

/// Refuses a role that is not allowed: other roles speak for the operator or the agent.
fn role(app: &App, Input(message): &Input) -> Result<(), Problem> {
    if app.served.roles.contains(&message.role) {
        return Ok(());
    }
    let allowed: Vec<_> = app.served.roles.iter().map(|role| json!(role).to_string()).collect();
    let detail = format!("the role of an input is {}, not {}", allowed.join(" or "), json!(message.role));
    Err(bad_body("/input/role", &detail, detail.clone()))
}

/// A body that is refused because of the value at a JSON pointer.
fn bad_body(pointer: &str, why: &str, detail: String) -> Problem {
    Problem::new(Code::BadBody, detail).with("errors", json!([{ "pointer": pointer, "detail": why }]))
}
