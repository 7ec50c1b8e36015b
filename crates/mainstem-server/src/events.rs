//! `GET /sessions/{id}/events`: replay, then tail.

use std::sync::Arc;

use axum::{
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use mainstem::{event::EventFilter, message::RunId};
use serde::Deserialize;

use crate::{
    app::{App, Conversation, Seat, Started},
    body::Query,
    caller::Caller,
    feed::{Form, Look, Wish, answer, form, look},
    problem::Problem,
};

/// How much is wanted of what is said piece by piece.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Detail {
    Lifecycle,
    #[default]
    Full,
    Verbose,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    after: Option<u64>,
    run: Option<String>,
    task: Option<String>,
    agent: Option<String>,
    agent_key: Option<String>,
    depth: Option<u16>,
    max_depth: Option<u16>,
    under: Option<String>,
    kind: Option<String>,
    #[serde(default)]
    detail: Detail,
    follow: Option<bool>,
}

impl Params {
    fn filter(&self) -> EventFilter {
        let mut filter = EventFilter::new();
        if let Some(agent) = &self.agent {
            filter = filter.agent(agent);
        }
        if let Some(key) = &self.agent_key {
            filter = filter.key(key.as_str());
        }
        if let Some(depth) = self.depth {
            filter = filter.depth(depth);
        }
        if let Some(depth) = self.max_depth {
            filter = filter.max_depth(depth);
        }
        if let Some(path) = &self.under {
            filter = filter.under(path);
        }
        if let Some(task) = &self.task {
            filter = filter.task(task);
        }
        if let Some(kinds) = &self.kind {
            filter = filter.kinds(kinds.split(',').map(|kind| kind.trim().to_ascii_uppercase()));
        }
        filter
    }
}

pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Query(params): Query<Params>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let conversation = app.session(&caller, &id).await?;
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let run = match &params.run {
        Some(id) => Some(run_of(&app, &caller, &conversation, id)?),
        None => None,
    };
    let wish = Wish {
        form: form(accept).unwrap_or(Form::Sse),
        filter: params.filter(),
        lifecycle: params.detail == Detail::Lifecycle,
        run: run.as_ref().map(|run| RunId::clone(run.handle.id())),
        follow: params.follow.unwrap_or(true),
    };
    let after = match last_event_id(&headers)? {
        Some(last) => last,
        None => params.after.unwrap_or(0),
    };
    let log = conversation.session.log();
    if after > log.last_seq() {
        let detail = format!("there is no event {after} yet; the latest is {}", log.last_seq());
        return Err(Problem::new(StatusCode::BAD_REQUEST, "bad_cursor", detail));
    }
    let from = (after + 1).max(run.as_ref().map_or(1, |run| run.first));
    let over = !wish.follow || run.as_ref().is_some_and(|run| run.is_over());
    match look(log.committed_from(from), &wish, over).await {
        Look::Gone { oldest } => {
            let detail =
                format!("events up to {} are no longer kept; begin with after={}", oldest - 1, oldest - 1);
            return Err(Problem::new(StatusCode::GONE, "gone", detail).with("oldest_seq", oldest));
        }
        // A browser's EventSource stops coming back.
        Look::Nothing => return Ok(StatusCode::NO_CONTENT.into_response()),
        Look::Something => {}
    }
    let seat = Seat::take(&conversation, app.limits.readers_per_session)?;
    Ok(answer(log.committed_from(from), wish, seat, None, app.stop.clone()))
}

/// A run, if it is one of this session.
fn run_of(
    app: &App,
    caller: &Caller,
    conversation: &Conversation,
    id: &str,
) -> Result<Arc<Started>, Problem> {
    let run = app.run(caller, id)?;
    let is_of_session = run.handle.session().id() == conversation.session.id();
    if is_of_session { Ok(run) } else { Err(Problem::not_found("run", id)) }
}

/// Where a reader was cut off.
fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    let wrong =
        || Problem::new(StatusCode::BAD_REQUEST, "bad_cursor", "Last-Event-ID is no number of an event");
    number.map(Some).ok_or_else(wrong)
}
