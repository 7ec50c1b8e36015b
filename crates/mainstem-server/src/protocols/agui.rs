//! AG-UI 1.0: `POST /ag-ui/{agent}`, and `POST /ag-ui` for the agent that leads by default.
//!
//! The thread is a session, and the frontend's run a run of it, or the part of one up to a
//! question: see [`mainstem::encode::agui`]. A request whose messages end with a user's begins a
//! run; one that has answers, or ends with a result of a frontend's tool, goes on with a run that
//! waits; another one reads the active run, or the last one once more.

mod answers;
mod input;
mod prompt;

use std::{collections::BTreeSet, sync::Arc};

use axum::{Router, extract::State, response::Response};
use mainstem::{
    encode::agui::{Agui, Asked, Children, FLEET, Requested},
    event::{AgentEvent, EventKind, FleetState},
    prelude::Session,
    session::FoundRun,
};
use mainstem_api::{Code, Input, NewRun, OnDisconnect, RunOptions};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::{answers::Answers, input::RunAgentInput};
use super::post_with_body;
use crate::{
    app::App,
    body::{Body, Digest, Path, Query},
    caller::Caller,
    problem::Problem,
    readers::ReaderPermit,
    runs::{BegunRun, NewRunOf, follow},
    sessions,
};

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/ag-ui", post_with_body(default_agent))
        .route("/ag-ui/{agent}", post_with_body(named_agent))
}

/// How the response is to be.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Form {
    /// How it shows the agents below the root; by default as the client's version knows it.
    children: Option<Shown>,
    /// What becomes of the run when the client disconnects, which is how AG-UI's clients stop one.
    on_disconnect: Option<OnDisconnect>,
}

/// A value of `children`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Shown {
    Subagents,
    Flatten,
    Hide,
}

/// A request, for whose answer its body is taken apart.
struct Exchange {
    app: Arc<App>,
    caller: Caller,
    agent: Option<String>,
    form: Form,
    input: RunAgentInput,
}

async fn default_agent(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(form): Query<Form>,
    Body(input, _): Body<RunAgentInput>,
) -> Result<Response, Problem> {
    Exchange { app, caller, agent: None, form, input }.answer().await
}

async fn named_agent(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(agent): Path<String>,
    Query(form): Query<Form>,
    Body(input, _): Body<RunAgentInput>,
) -> Result<Response, Problem> {
    Exchange { app, caller, agent: Some(agent), form, input }.answer().await
}

impl Exchange {
    async fn answer(self) -> Result<Response, Problem> {
        let has_answers = !self.input.resume.is_empty() || self.input.ends_with("tool");
        if has_answers {
            return self.go_on().await;
        }
        if self.input.ends_with("user") { self.begin().await } else { self.attach().await }
    }

    /// Begins a run with the last message, or finds the one that an earlier request with the same
    /// ids has begun.
    async fn begin(mut self) -> Result<Response, Problem> {
        let id = self.input.session_id();
        let session = match self.app.session(&self.caller, &id).await {
            Ok(session) => Some(session),
            Err(problem) if problem.is_not_found() => None,
            Err(problem) => return Err(problem),
        };
        let (fleet, history) = match &session {
            Some(session) => (sessions::committed_fleet(session).await?, session.history()),
            None => (FleetState::default(), Vec::new()),
        };
        let digest = self.input.digest();
        let options = RunOptions { attributes: self.attributes(), ..RunOptions::default() };
        let input = Some(Input(prompt::input(&self.input, &history)?));
        let run = NewRun { agent: self.agent.clone(), input, options, ..NewRun::default() };
        let key = Some((self.input.key(), &digest));
        let request = NewRunOf { session: &id, run, key, is_read: true };
        let tools = self.input.take_tools(&self.app, &self.caller.tenant).await?;
        let begun = request.begin_with_tools(&self.app, &self.caller, tools).await?;
        let BegunRun { run, is_new, reader } = begun;
        // A run is read, so it has a reader.
        let reader =
            reader.map_or_else(|| ReaderPermit::acquire(&self.app, &self.caller, run.session()), Ok)?;
        if is_new {
            let encoder = Agui::new(self.requested(), without_ended(fleet, &run));
            return Ok(self.stream(&run, encoder, reader, true));
        }
        self.again(&run, reader).await
    }

    /// Answers what the session waits for, and goes on with its run after what the client has.
    async fn go_on(self) -> Result<Response, Problem> {
        let session = self.app.session(&self.caller, &self.input.session_id()).await?;
        let found = latest(&session)?;
        let read = Read::of(&found).await;
        let last = self.input.messages.last().filter(|message| message.role == "user");
        let is_news = last.is_some_and(|last| {
            let is_known = |id: &str| prompt::knows(&session.history(), id) || read.inputs.contains(id);
            !is_known(&last.id)
        });
        if is_news && !found.is_over() {
            let detail = "a run that waits can be answered, but has no place for a further message; send the \
                          message once the run has ended";
            return Err(Problem::new(Code::RunActive, detail).with("run_id", found.id().as_str()));
        }
        let reader = ReaderPermit::acquire(&self.app, &self.caller, &session)?;
        let answers = Answers::of(&self.input, &session, read.asked)?;
        let (asked, after) = answers.give(&session, self.input.position()).await?;
        if is_news {
            drop(reader);
            return self.begin().await;
        }
        let fleet = without_ended(sessions::committed_fleet(&session).await?, &found);
        let encoder = Agui::new(self.requested(), fleet).with_asked(asked).with_after(after);
        Ok(self.stream(&found, encoder, reader, true))
    }

    /// Reads the active run, or else the last one if it answers the client's last message.
    async fn attach(self) -> Result<Response, Problem> {
        let session = self.app.session(&self.caller, &self.input.session_id()).await?;
        let found = latest(&session)?;
        let last = self.input.messages.iter().rfind(|message| message.role == "user");
        let inputs = Read::of(&found).await.inputs;
        if found.is_over() && !last.is_some_and(|last| inputs.contains(&last.id)) {
            let detail = "nothing to do: the messages end with neither a user's nor a tool's, `resume` is empty, \
                          and the thread has no active run";
            return Err(Problem::new(Code::BadBody, detail));
        }
        let reader = ReaderPermit::acquire(&self.app, &self.caller, &session)?;
        self.again(&found, reader).await
    }

    /// Streams a run from its beginning to a client that may have a part of it.
    async fn again(self, run: &FoundRun, reader: ReaderPermit) -> Result<Response, Problem> {
        let fleet = without_ended(sessions::committed_fleet(run.session()).await?, run);
        let asked = Read::of(run).await.asked;
        // The results of the run's calls are among the messages that are replaced.
        let requested = Requested { results: BTreeSet::new(), ..self.requested() };
        let encoder = Agui::new(requested, fleet).with_asked(asked).with_messages(self.input.before_run());
        Ok(self.stream(run, encoder, reader, false))
    }

    fn stream(self, run: &FoundRun, encoder: Agui, reader: ReaderPermit, is_own: bool) -> Response {
        self.caller.release_permit();
        let is_tied =
            is_own && self.form.on_disconnect.unwrap_or(OnDisconnect::Cancel) == OnDisconnect::Cancel;
        follow(&self.app, run, Box::new(encoder), reader, is_tied)
    }

    /// What the client sent beside its messages, for tools and children.
    fn attributes(&self) -> Map<String, Value> {
        let RunAgentInput { thread_id, run_id, parent_run_id, forwarded_props, .. } = &self.input;
        let mut state = self.input.state.clone();
        if let Some(members) = state.as_object_mut() {
            members.remove(FLEET);
        }
        let ours = json!({
            "threadId": thread_id, "runId": run_id, "parentRunId": parent_run_id,
            "state": state, "forwardedProps": forwarded_props,
        });
        Map::from_iter([("agui".to_owned(), ours)])
    }

    fn requested(&self) -> Requested {
        let is_versioned = self.input.protocol_version.is_some();
        let children = match self.form.children {
            Some(Shown::Subagents) => Children::Subagents,
            Some(Shown::Hide) => Children::Hide,
            None if is_versioned => Children::Subagents,
            Some(Shown::Flatten) | None => Children::Flatten,
        };
        Requested {
            thread_id: self.input.thread_id.clone(),
            run_id: self.input.run_id.clone(),
            parent_run_id: self.input.parent_run_id.clone(),
            is_versioned,
            children,
            state: self.input.state.clone(),
            results: self.input.result_ids().map(str::to_owned).collect(),
        }
    }
}

/// Returns the active run of a session, or else its last.
fn latest(session: &Session) -> Result<FoundRun, Problem> {
    let active = session.active().map(FoundRun::Live);
    let found = active.or_else(|| session.find_runs().pop());
    found.ok_or_else(|| Problem::new(Code::NotAsked, "the thread has no run"))
}

/// Returns the fleet without the agents that have ended before the run: a client returns the shared
/// state with each request, so it must not grow with the session.
fn without_ended(mut fleet: FleetState, run: &FoundRun) -> FleetState {
    let began_at = run.view().created_at;
    fleet.agents.retain(|agent| agent.ended_at.is_none_or(|at| at >= began_at));
    fleet
}

/// What the events of a run so far say.
#[derive(Default)]
struct Read {
    asked: Asked,
    /// The ids of the root's inputs.
    inputs: BTreeSet<String>,
}

impl Read {
    async fn of(run: &FoundRun) -> Self {
        let mut cursor = run.session().log().committed_from(run.first());
        let (mut read, mut count) = (Self::default(), 0_usize);
        while let Some(event) = cursor.at_hand().await {
            count += 1;
            if count.is_multiple_of(1024) {
                tokio::task::yield_now().await;
            }
            if event.run_id() == Some(run.id()) {
                read.apply(&event);
            }
        }
        read
    }

    fn apply(&mut self, event: &AgentEvent) {
        self.asked.apply(event);
        if let (EventKind::AgentStart { input, .. }, true) = (&event.kind, event.is_root()) {
            self.inputs.extend(input.iter().filter_map(|message| Some(message.id.as_ref()?.to_string())));
        }
    }
}

impl RunAgentInput {
    /// Returns the id of the session: that of the thread, or, for a thread whose id can't be one, a
    /// hash of it.
    fn session_id(&self) -> String {
        match self.thread_id.parse::<mainstem::message::SessionId>() {
            Ok(id) => id.to_string(),
            Err(_) => format!("ag-ui-{:.32}", Digest::of("thread", self.thread_id.as_bytes()).to_string()),
        }
    }

    /// Returns the idempotency key: the run that the frontend names.
    fn key(&self) -> String {
        let names = json!([self.thread_id, self.run_id]).to_string();
        format!("ag-ui-{}", Digest::of("run", names.as_bytes()))
    }

    /// Returns what must be the same in two requests with one key. A client that repeats one has
    /// parts of the answer among its messages.
    fn digest(&self) -> Digest {
        let last = self.messages.last().map(|message| (&message.id, &message.content));
        Digest::of("input", json!(last).to_string().as_bytes())
    }

    /// Returns the number of the last event that the client has, from the shared state.
    fn position(&self) -> Option<u64> {
        self.state.get(FLEET)?.get("seq")?.as_u64()
    }
}
