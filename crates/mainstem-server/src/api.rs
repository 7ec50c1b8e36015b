//! Everything that can be asked.

use std::sync::LazyLock;

use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use mainstem::{
    event::{AgentEvent, AgentState, FleetState},
    message::ToolSpec,
    subagent::ChildSummary,
    task::TaskRecord,
};
use serde_json::{Value, json};

use crate::{
    agents, catalog, events, login, metrics,
    operation::{Operation, document},
    prefix::Prefix,
    runs, server, sessions, tasks,
    wire::{
        Agents, Answer, Answered, Cancel, Items, Login, ModelView, NewRun, RunView, Said, SessionView,
        Stopped, Transcript,
    },
};

const WHOLE: &str = "Events: what there is, then live. Each frame's id is the event's number.";

/// The table.
#[expect(clippy::too_many_lines, reason = "a table is as long as it is")]
pub(crate) fn operations() -> Vec<Operation> {
    let number = || json!({ "type": "integer", "minimum": 0 });
    let text = || json!({ "type": "string" });
    let once = |operation: Operation| {
        let says =
            "A request with the key and body of an earlier one, within a day, returns the run of that one.";
        operation.header(
            "Idempotency-Key",
            says,
            json!({ "type": "string", "minLength": 1, "maxLength": 255 }),
        )
    };
    let last = |operation: Operation| {
        operation.header("Last-Event-ID", "The number of the last event that was seen.", number())
    };
    vec![
        Operation::get("/v1/sessions", sessions::list, "The sessions, open and recorded.")
            .json::<Items<SessionView>>(200, "All of the caller's sessions."),
        Operation::get("/v1/sessions/{session}", sessions::get, "A session.")
            .json::<SessionView>(200, "The session."),
        Operation::delete("/v1/sessions/{session}", sessions::delete, "Forget a session, for good.")
            .empty(204, "It is gone."),
        Operation::get("/v1/sessions/{session}/runs", runs::list, "A session's runs, oldest first.")
            .json::<Items<RunView>>(200, "Those of earlier processes, too."),
        once(Operation::post(
            "/v1/sessions/{session}/runs",
            runs::post,
            "Begin a run; the session begins with its first.",
        ))
        .header("Prefer", "`wait=30` waits so many seconds for the reply, 60 at most.", text())
        .body::<NewRun>()
        .json::<RunView>(200, "It has ended within the time of `Prefer: wait`.")
        .events("Its events, if `Accept` asks for them.")
        .json::<RunView>(202, "It has begun; `Location` says where it is."),
        last(Operation::get("/v1/sessions/{session}/events", events::get, "A session's events."))
            .query::<events::Params>()
            .events(WHOLE)
            .empty(204, "It is over, and there is nothing newer."),
        Operation::get("/v1/sessions/{session}/events/{seq}", events::one, "One event, however large it is.")
            .json::<AgentEvent>(200, "The event."),
        Operation::get("/v1/sessions/{session}/fleet", sessions::fleet, "Every agent, as it is now.")
            .header("If-None-Match", "The `ETag` of the state that is known.", text())
            .json::<FleetState>(200, "The state after event `seq`.")
            .empty(304, "Nothing has happened since."),
        Operation::get("/v1/sessions/{session}/agents", agents::list, "The agents that were spawned.")
            .json::<Items<ChildSummary>>(200, "In the order of their start."),
        Operation::get("/v1/sessions/{session}/agents/{key}", agents::get, "An agent.")
            .json::<AgentState>(200, "As it is now."),
        Operation::get(
            "/v1/sessions/{session}/agents/{key}/transcript",
            agents::transcript,
            "What an agent was told and said; the root's key is `root`.",
        )
        .json::<Transcript>(200, "Its messages, as far as they are complete."),
        once(Operation::post(
            "/v1/sessions/{session}/agents/{key}/messages",
            agents::send,
            "Tell an agent something.",
        ))
        .body::<Said>()
        .empty(202, "It was handed over."),
        Operation::post(
            "/v1/sessions/{session}/agents/{key}/cancel",
            agents::cancel,
            "Stop an agent, with all below it.",
        )
        .json::<Stopped>(202, "It was asked to; its `AGENT_END` says when it has."),
        Operation::post(
            "/v1/sessions/{session}/confirmations/{confirm}",
            agents::confirm,
            "Answer a question for a person.",
        )
        .body::<Answer>()
        .json::<Answered>(200, "It was answered."),
        Operation::get("/v1/runs/{run}", runs::get, "A run.").json::<RunView>(200, "The run."),
        Operation::post("/v1/runs/{run}/cancel", runs::cancel, "Stop a run, with all its agents.")
            .query::<Cancel>()
            .json::<RunView>(202, "It was asked to."),
        Operation::get("/v1/tasks", tasks::list, "Background tasks, oldest first.")
            .query::<tasks::Params>()
            .json::<Items<TaskRecord>>(200, "The caller's."),
        Operation::get("/v1/tasks/{task}", tasks::get, "A background task.")
            .json::<TaskRecord>(200, "The task."),
        last(Operation::get(
            "/v1/tasks/{task}/events",
            events::of_task,
            "What a background task does, to its end.",
        ))
        .query::<events::Params>()
        .events(WHOLE)
        .empty(204, "It is over, and there is nothing newer."),
        Operation::get("/v1/tasks/{task}/wait", tasks::wait, "Wait for a background task.")
            .query::<tasks::Wait>()
            .json::<TaskRecord>(200, "It is over.")
            .json::<TaskRecord>(202, "It is not over yet."),
        Operation::post("/v1/tasks/{task}/cancel", tasks::cancel, "Stop a background task.")
            .json::<TaskRecord>(202, "It was asked to."),
        Operation::get("/v1/agents", catalog::agents, "The agent that runs, and those it can spawn.")
            .json::<Agents>(200, "Hidden ones aside."),
        Operation::get("/v1/models", catalog::models, "The models that are asked, and by whom.")
            .json::<Items<ModelView>>(200, "By name."),
        Operation::get("/v1/tools", catalog::tools, "The tools of the agent that runs.")
            .json::<Items<ToolSpec>>(200, "As its model is told of them."),
        Operation::post("/v1/login", login::login, "Keep a token in a cookie, for `EventSource`.")
            .open()
            .body::<Login>()
            .empty(204, "The cookie is set."),
        Operation::post("/v1/logout", login::logout, "Forget the cookie.").open().empty(204, "It is gone."),
        Operation::get("/healthz", async || "ok\n", "Whether the process answers.")
            .open()
            .text("text/plain", "It does."),
        Operation::get("/readyz", server::ready, "Whether runs can begin.")
            .open()
            .text("text/plain", "They can."),
        Operation::get("/metrics", metrics::get, "Figures for Prometheus, of the whole server.")
            .text("application/openmetrics-text", "In OpenMetrics' text format."),
        Operation::get("/openapi.json", openapi, "This document.").open().json::<Value>(200, "OpenAPI 3.1."),
    ]
}

/// Stands in the document for the prefix.
const MARK: &str = "<prefix>";

/// The document before and after the prefix. It is made once: making it takes a thousand times as long as sending it.
static DOCUMENT: LazyLock<(String, String)> = LazyLock::new(|| {
    let document = document(&operations(), MARK).to_string();
    let mark = Value::from(MARK).to_string();
    let parts = document.split_once(&mark).map(|(before, after)| (before.to_owned(), after.to_owned()));
    parts.unwrap_or((document, String::new()))
});

/// The document, for the prefix under which the routes are nested.
async fn openapi(prefix: Prefix) -> Response {
    let (before, after) = &*DOCUMENT;
    let url = Value::from(if prefix.0.is_empty() { "/" } else { &*prefix.0 });
    ([(header::CONTENT_TYPE, "application/json")], format!("{before}{url}{after}")).into_response()
}
