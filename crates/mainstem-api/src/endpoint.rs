//! The endpoints of a server.

use mainstem_event::{AgentEvent, AgentState, ChildSummary, FleetState};
use mainstem_message::{StoredData, ToolSpec};
use mainstem_task::TaskRecord;
use serde_json::{Value, json};

use crate::{
    Agents, Approval, Approved, CancelQuery, CancelledAgent, EventQuery, FleetQuery, Items, JobQuery,
    JobView, LinkView, LiveFrame, LiveQuery, Login, ModelView, NewJob, NewLink, NewLinkView, NewMessage,
    NewRun, NewToolResult, Operation, Page, RunQuery, RunView, SessionQuery, SessionView, TaskQuery,
    Transcript, WaitQuery,
};

/// The cookie in which a browser stores its token: `EventSource` sends no headers of its own.
pub const COOKIE: &str = "mainstem_token";

/// The header with which a token that is of no tenant, the operator's, sends a request as a tenant.
pub const TENANT_HEADER: &str = "Mainstem-Tenant";

/// Declares the endpoints, and the list of all of them.
macro_rules! endpoints {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// An endpoint of a server. A server has a handler for each; a client builds paths from it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(clippy::exhaustive_enums, reason = "a server without a handler for one must not compile")]
        pub enum Endpoint {
            $($(#[$doc])* $name,)*
        }

        impl Endpoint {
            /// All endpoints, in the order of the document.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

endpoints! {
    /// Lists sessions.
    ListSessions,
    /// Returns a session.
    GetSession,
    /// Deletes a session.
    DeleteSession,
    /// Lists a session's runs.
    ListRuns,
    /// Begins a run.
    BeginRun,
    /// Streams a session's events.
    GetEvents,
    /// Returns one event.
    GetEvent,
    /// Returns the state of the fleet.
    GetFleet,
    /// Streams what all active sessions do.
    Live,
    /// Lists a session's links.
    ListLinks,
    /// Creates a link of a session.
    AddLink,
    /// Revokes a link.
    DeleteLink,
    /// Returns the link that the caller has.
    GetLink,
    /// Stores data for a session's messages.
    StoreData,
    /// Returns data of a session's messages.
    GetData,
    /// Lists the children.
    ListChildren,
    /// Returns the state of an agent.
    GetAgent,
    /// Returns the messages of an agent.
    GetTranscript,
    /// Sends a message to a child.
    SendMessage,
    /// Cancels a child.
    CancelAgent,
    /// Answers a request for approval.
    Confirm,
    /// Gives the result of an external tool's call.
    SubmitToolResult,
    /// Returns a run.
    GetRun,
    /// Cancels a run.
    CancelRun,
    /// Lists background tasks.
    ListTasks,
    /// Returns a background task.
    GetTask,
    /// Streams a background task's events.
    GetTaskEvents,
    /// Waits for a background task.
    WaitForTask,
    /// Cancels a background task.
    CancelTask,
    /// Removes a background task.
    RemoveTask,
    /// Lists jobs.
    ListJobs,
    /// Adds a job.
    AddJob,
    /// Returns a job.
    GetJob,
    /// Cancels a job.
    CancelJob,
    /// Lists agents.
    ListAgents,
    /// Lists models.
    ListModels,
    /// Lists tools.
    ListTools,
    /// Stores a token in a cookie.
    Login,
    /// Deletes the cookie.
    Logout,
    /// Whether the process responds.
    Health,
    /// Whether runs can begin.
    Ready,
    /// Metrics.
    Metrics,
    /// The OpenAPI document.
    OpenApi,
}

const EVENTS: &str = "Events: the stored ones, then live. The id of a frame is the number of the event.";

impl Endpoint {
    /// Returns its path with these parameters, each percent-encoded.
    ///
    /// ```
    /// use mainstem_api::Endpoint;
    ///
    /// assert_eq!(Endpoint::GetTask.path(&["task 7"]), "/v1/tasks/task%207");
    /// ```
    pub fn path(self, parameters: &[&str]) -> String {
        let mut parameters = parameters.iter();
        let parts = self.operation().path().split('/').map(|part| {
            let parameter = if part.starts_with('{') { parameters.next() } else { None };
            parameter.map_or_else(|| part.to_owned(), |parameter| escape(parameter))
        });
        parts.collect::<Vec<_>>().join("/")
    }

    /// Returns its description.
    #[expect(clippy::too_many_lines, reason = "a table of all endpoints")]
    pub fn operation(self) -> Operation {
        match self {
            Self::ListSessions => Operation::get("/v1/sessions", "List sessions, open and recorded.")
                .query::<SessionQuery>()
                .json::<Page<SessionView>>(200, "A page; the session whose run began last comes first."),
            Self::GetSession => Operation::get("/v1/sessions/{session}", "Return a session.")
                .json::<SessionView>(200, "The session."),
            Self::DeleteSession => {
                Operation::delete("/v1/sessions/{session}", "Delete a session permanently.")
                    .empty(204, "It is deleted.")
            }
            Self::ListRuns => {
                Operation::get("/v1/sessions/{session}/runs", "List a session's runs, oldest first.")
                    .query::<RunQuery>()
                    .json::<Page<RunView>>(
                        200,
                        "A page of its runs, those of earlier processes included: the latest, or those before a page.",
                    )
            }
            Self::BeginRun => idempotent(Operation::post(
                "/v1/sessions/{session}/runs",
                "Begin a run; the first run creates the session.",
            ))
            .header("Prefer", "`wait=30` waits this many seconds for the reply, 60 at most.", text())
            .body::<NewRun>()
            .json::<RunView>(200, "It has ended within the time of `Prefer: wait`.")
            .events("Its events, if `Accept` asks for them.")
            .json::<RunView>(202, "It has begun; `Location` is its path."),
            Self::GetEvents => {
                resumable(Operation::get("/v1/sessions/{session}/events", "Stream a session's events."))
                    .query::<EventQuery>()
                    .events(EVENTS)
                    .empty(204, "The run is over, and there are no newer events.")
            }
            Self::GetEvent => {
                Operation::get("/v1/sessions/{session}/events/{seq}", "Return one event in full.")
                    .json::<AgentEvent>(200, "The event.")
            }
            Self::GetFleet => {
                Operation::get("/v1/sessions/{session}/fleet", "Return the state of every agent.")
                    .query::<FleetQuery>()
                    .header("If-None-Match", "The `ETag` of a known state.", text())
                    .json::<FleetState>(200, "The state after event `seq`.")
                    .empty(304, "Nothing has happened since.")
            }
            Self::Live => Operation::get("/v1/live", "Stream what all active sessions do.")
                .query::<LiveQuery>()
                .stream::<LiveFrame>(
                    "Each session with the state of its fleet, then its events without deltas.",
                ),
            Self::ListLinks => Operation::get("/v1/sessions/{session}/links", "List a session's links.")
                .json::<Items<LinkView>>(200, "Those that have not ended, the oldest first."),
            Self::AddLink => Operation::post(
                "/v1/sessions/{session}/links",
                "Create a link, with which a session is read without a token of the server.",
            )
            .body::<NewLink>()
            .json::<NewLinkView>(201, "It is created; `Location` is its path."),
            Self::DeleteLink => Operation::delete("/v1/sessions/{session}/links/{link}", "Revoke a link.")
                .empty(204, "It is revoked; streams of its readers end within seconds."),
            Self::GetLink => Operation::get("/v1/link", "Return the link whose token the request has.")
                .json::<LinkView>(200, "The link."),
            Self::StoreData => Operation::post(
                "/v1/sessions/{session}/data",
                "Store data, such as a picture, that the messages of a run then refer to.",
            )
            .body_of_bytes()
            .json::<StoredData>(201, "It is stored; `Location` is its path."),
            Self::GetData => {
                Operation::get("/v1/sessions/{session}/data/{data}", "Return data that a message refers to.")
                    .bytes("The bytes.")
            }
            Self::ListChildren => Operation::get("/v1/sessions/{session}/agents", "List the spawned agents.")
                .json::<Items<ChildSummary>>(200, "In the order of their start."),
            Self::GetAgent => {
                Operation::get("/v1/sessions/{session}/agents/{key}", "Return the state of an agent.")
                    .json::<AgentState>(200, "Its state.")
            }
            Self::GetTranscript => Operation::get(
                "/v1/sessions/{session}/agents/{key}/transcript",
                "Return an agent's messages; the root's key is `root`.",
            )
            .json::<Transcript>(200, "Its messages, as far as they are complete."),
            Self::SendMessage => idempotent(Operation::post(
                "/v1/sessions/{session}/agents/{key}/messages",
                "Send a message to a child.",
            ))
            .body::<NewMessage>()
            .empty(202, "The message is accepted."),
            Self::CancelAgent => Operation::post(
                "/v1/sessions/{session}/agents/{key}/cancel",
                "Cancel an agent and every agent below it.",
            )
            .json::<CancelledAgent>(202, "It was asked to stop; its `AGENT_END` acknowledges it."),
            Self::Confirm => Operation::post(
                "/v1/sessions/{session}/confirmations/{confirm}",
                "Answer a request for approval.",
            )
            .body::<Approval>()
            .json::<Approved>(200, "It is answered."),
            Self::SubmitToolResult => Operation::post(
                "/v1/sessions/{session}/calls/{call}/result",
                "Give the result of an external tool's call.",
            )
            .body::<NewToolResult>()
            .empty(202, "The result is accepted."),
            Self::GetRun => {
                Operation::get("/v1/runs/{run}", "Return a run.").json::<RunView>(200, "The run.")
            }
            Self::CancelRun => Operation::post("/v1/runs/{run}/cancel", "Cancel a run and all its agents.")
                .query::<CancelQuery>()
                .json::<RunView>(202, "It was asked to stop."),
            Self::ListTasks => Operation::get("/v1/tasks", "List background tasks, oldest first.")
                .query::<TaskQuery>()
                .json::<Items<TaskRecord>>(200, "The caller's tasks."),
            Self::GetTask => Operation::get("/v1/tasks/{task}", "Return a background task.")
                .json::<TaskRecord>(200, "The task."),
            Self::GetTaskEvents => resumable(Operation::get(
                "/v1/tasks/{task}/events",
                "Stream a background task's events, to its end.",
            ))
            .query::<EventQuery>()
            .events(EVENTS)
            .empty(204, "The task is over, and there are no newer events."),
            Self::WaitForTask => Operation::get("/v1/tasks/{task}/wait", "Wait for a background task.")
                .query::<WaitQuery>()
                .json::<TaskRecord>(200, "It is over.")
                .json::<TaskRecord>(202, "It is not over yet."),
            Self::CancelTask => Operation::post("/v1/tasks/{task}/cancel", "Cancel a background task.")
                .json::<TaskRecord>(202, "It was asked to stop."),
            Self::RemoveTask => Operation::delete(
                "/v1/tasks/{task}",
                "Remove a background task that is over, with its result.",
            )
            .empty(204, "It is removed."),
            Self::ListJobs => Operation::get("/v1/jobs", "List jobs: runs at a time, or again and again.")
                .query::<JobQuery>()
                .json::<Page<JobView>>(200, "A page; the job that is due first comes first."),
            Self::AddJob => Operation::post("/v1/jobs", "Add a job.")
                .body::<NewJob>()
                .json::<JobView>(201, "It is stored; `Location` is its path."),
            Self::GetJob => {
                Operation::get("/v1/jobs/{job}", "Return a job.").json::<JobView>(200, "The job.")
            }
            Self::CancelJob => {
                Operation::post("/v1/jobs/{job}/cancel", "Cancel a job, and its run if one is active.")
                    .json::<JobView>(202, "It begins no further run.")
            }
            Self::ListAgents => {
                Operation::get("/v1/agents", "List the agent that leads runs, and those that it can spawn.")
                    .json::<Agents>(200, "Without hidden ones.")
            }
            Self::ListModels => {
                Operation::get("/v1/models", "List the models, and the agents that use them.")
                    .json::<Items<ModelView>>(200, "By name.")
            }
            Self::ListTools => Operation::get("/v1/tools", "List the tools of the agent that leads runs.")
                .json::<Items<ToolSpec>>(200, "As its model gets them."),
            Self::Login => Operation::post("/v1/login", "Store a token in a cookie, for `EventSource`.")
                .open()
                .body::<Login>()
                .empty(204, "The cookie is set."),
            Self::Logout => Operation::post("/v1/logout", "Delete the cookie.")
                .open()
                .empty(204, "The cookie is deleted."),
            Self::Health => Operation::get("/healthz", "Whether the process responds.")
                .open()
                .text("text/plain", "It does."),
            Self::Ready => {
                Operation::get("/readyz", "Whether runs can begin.").open().text("text/plain", "They can.")
            }
            Self::Metrics => Operation::get("/metrics", "Metrics of the whole server, for Prometheus.")
                .text("application/openmetrics-text", "In OpenMetrics' text format."),
            Self::OpenApi => {
                Operation::get("/openapi.json", "This document.").open().json::<Value>(200, "OpenAPI 3.1.")
            }
        }
    }
}

fn text() -> Value {
    json!({ "type": "string" })
}

/// Adds the header with which a request can be repeated.
fn idempotent(operation: Operation) -> Operation {
    let description =
        "A request with the key and body of an earlier one, within a day, returns the run of that one.";
    let key = json!({ "type": "string", "minLength": 1, "maxLength": 255 });
    operation.header("Idempotency-Key", description, key)
}

/// Adds the header with which a stream is resumed.
fn resumable(operation: Operation) -> Operation {
    let number = json!({ "type": "integer", "minimum": 0 });
    operation.header("Last-Event-ID", "The number of the last event that was received.", number)
}

/// Percent-encodes a part of a path ([RFC
/// 3986](https://www.rfc-editor.org/rfc/rfc3986#section-2.3)).
fn escape(part: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~:".contains(&byte);
    let encoded = part
        .bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    encoded.collect()
}
