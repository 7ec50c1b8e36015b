//! `POST /sessions/{id}/runs`, `GET /runs/{id}`, `POST /runs/{id}/cancel`.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use mainstem::{
    event::{Clock, EventFilter, Outcome, SystemClock},
    message::{Failure, Message},
    policy::Limits as Budget,
    prelude::{Background, RunOptions},
    react::RunOutcome,
    tool::OutputSchema,
};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Value, json};

use crate::{
    app::{App, Conversation, Seat, Started},
    body::Body,
    caller::Caller,
    feed::{Tied, Wish, answer, form},
    problem::Problem,
};

/// The longest that an answer waits for a reply.
const MAX_WAIT: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRun {
    agent: Option<String>,
    input: Input,
    #[serde(default)]
    options: Options,
}

/// A text, or a whole message.
struct Input(Message);

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) if text.trim().is_empty() => Err(D::Error::custom("the input is empty")),
            Value::String(text) => Ok(Self(text.into())),
            message => Message::deserialize(message).map(Self).map_err(D::Error::custom),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    user: Option<String>,
    attributes: Map<String, Value>,
    budget: Budget,
    plan_mode: bool,
    force_sync: bool,
    /// Whether somebody answers confirmations.
    people: Option<bool>,
    background: Leftover,
    output_schema: Option<Value>,
    on_disconnect: OnDisconnect,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Leftover {
    #[default]
    Detach,
    Wait,
    Cancel,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum OnDisconnect {
    #[default]
    Continue,
    Cancel,
}

impl Options {
    fn into_run(self) -> Result<RunOptions, Problem> {
        let mut options = RunOptions::new()
            .with_budget(self.budget)
            .with_plan_mode(self.plan_mode)
            .with_force_sync(self.force_sync)
            .with_people(self.people.unwrap_or(true))
            .with_background(match self.background {
                Leftover::Detach => Background::Detach,
                Leftover::Wait => Background::Wait,
                Leftover::Cancel => Background::Cancel,
            });
        options.attributes = self.attributes;
        if let Some(user) = self.user {
            options = options.with_user(user);
        }
        if let Some(schema) = self.output_schema {
            let wrong = |error: mainstem::tool::OutputSchemaError| {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_body", error.to_string()).with(
                    "errors",
                    json!([{ "pointer": "/options/output_schema", "detail": error.to_string() }]),
                )
            };
            options = options.with_output(OutputSchema::new(schema).map_err(wrong)?);
        }
        Ok(options)
    }
}

pub(crate) async fn post(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(wanted): Body<NewRun>,
) -> Result<Response, Problem> {
    let NewRun { agent, input, options } = wanted;
    check_agent(&caller, agent.as_deref())?;
    let is_tied = options.on_disconnect == OnDisconnect::Cancel;
    let options = options.into_run()?;
    app.admit()?;
    let conversation = app.open(&caller, &id).await?;
    let first = conversation.session.log().last_seq() + 1;
    let handle = conversation.session.run(input.0, options).detach();
    let created_at = SystemClock.now();
    let run = app.keep(&conversation, Started { tenant: caller.tenant.clone(), handle, first, created_at });
    let mut response = respond(&app, &conversation, &run, &headers, is_tied).await?;
    let place = format!("/v1/runs/{}", run.handle.id());
    if let Ok(place) = HeaderValue::from_str(&place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

/// The agent that runs is the harness's own.
fn check_agent(caller: &Caller, agent: Option<&str>) -> Result<(), Problem> {
    let crew = caller.harness.crew();
    let known = crew.root.id();
    match agent.filter(|agent| *agent != &**known) {
        None => Ok(()),
        Some(agent) => {
            let detail = format!("this server runs {known:?}, not {agent:?}");
            Err(Problem::new(StatusCode::NOT_FOUND, "unknown_agent", detail))
        }
    }
}

async fn respond(
    app: &Arc<App>,
    conversation: &Arc<Conversation>,
    run: &Arc<Started>,
    headers: &HeaderMap,
    is_tied: bool,
) -> Result<Response, Problem> {
    let said = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(form) = form(said(header::ACCEPT).unwrap_or_default()) {
        let tied = is_tied.then(|| Tied(run.handle.clone()));
        let wish = Wish {
            form,
            filter: EventFilter::new(),
            lifecycle: false,
            run: Some(run.handle.id().clone()),
            follow: true,
        };
        let seat = Seat::take(conversation, app.limits.readers_per_session)?;
        let cursor = conversation.session.log().committed_from(run.first);
        return Ok(answer(cursor, wish, seat, tied, app.stop.clone()));
    }
    let wait = headers.get("prefer").and_then(|value| wait(value.to_str().ok()?));
    if let Some(time) = wait {
        // Nobody stops the run when this is dropped: it is driven elsewhere.
        let _ = tokio::time::timeout(time, run.handle.outcome()).await;
        if run.is_over() {
            return Ok((StatusCode::OK, Json(describe(run))).into_response());
        }
    }
    Ok((StatusCode::ACCEPTED, Json(describe(run))).into_response())
}

/// `Prefer: wait=30` of RFC 7240, in seconds.
fn wait(prefer: &str) -> Option<Duration> {
    let mut wishes = prefer.split(',').flat_map(|part| part.split(';')).map(str::trim);
    let seconds = wishes.find_map(|wish| wish.strip_prefix("wait="))?.trim_matches('"').parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_WAIT))
}

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(describe(&*app.run(&caller, &id)?)))
}

pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let run = app.run(&caller, &id)?;
    run.handle.cancel();
    Ok((StatusCode::ACCEPTED, Json(describe(&run))))
}

/// A run as JSON.
pub(crate) fn describe(run: &Started) -> Value {
    let mut shown = json!({
        "id": run.handle.id(),
        "session_id": run.handle.session().id(),
        "status": "running",
        "first_seq": run.first,
        "created_at": run.created_at,
    });
    let Value::Object(fields) = &mut shown else { return shown };
    match run.ended() {
        Some(outcome) => fields.extend(ended(&outcome)),
        None if run.is_over() => _ = fields.insert("status".to_owned(), json!("dropped")),
        None => {}
    }
    shown
}

fn ended(outcome: &RunOutcome) -> Map<String, Value> {
    let mut fields = Map::new();
    let status = if outcome.outcome == Outcome::Success { json!("success") } else { json!(outcome.outcome) };
    fields.insert("status".to_owned(), status);
    if let Some(answer) = &outcome.answer {
        fields.insert("reply".to_owned(), json!(answer.text()));
        fields.insert("message".to_owned(), json!(answer));
    }
    if let Some(error) = &outcome.error {
        fields.insert("error".to_owned(), json!(Failure::from(error)));
    }
    fields.insert("usage".to_owned(), json!(outcome.usage));
    fields
}
