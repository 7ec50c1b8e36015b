//! A server of the Agent Protocol that does what AgentScope-Java's does (its
//! `AgentProtocolTaskStore` and `AgentProtocolTaskEventBus`), where ours does better: events are
//! numbered from 1 within the stream of a task, which is dropped when the task ends, and a later
//! reader gets a new, silent one; a cancel ends the stream without an event; an approval pauses the
//! agent, whose events then say that it has ended; a task is a conversation; a finished one is
//! refused with 409.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{Path, Query, State},
    http::StatusCode,
    response::{
        IntoResponse, Response,
        sse::{Event, Sse},
    },
    routing::{get, post},
};
use futures_util::stream;
use mainstem_testing::remote::Act;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify, time::sleep};

/// How the server differs from the newest one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Version {
    /// Each event has a payload.
    Verbose,
    /// Typed fields alone: `full` is the most.
    Typed,
    /// Streaming is switched off.
    Polled,
    /// As `Verbose`, and the task ends before its events are read.
    Early,
}

pub(super) struct Java {
    act: Act,
    version: Version,
    /// The inputs of the tasks, in order.
    pub(super) inputs: Mutex<Vec<String>>,
    tasks: Mutex<HashMap<String, Task>>,
    channels: Mutex<HashMap<String, Arc<Channel>>>,
    changed: Notify,
}

struct Task {
    status: &'static str,
    result: Option<String>,
    error: Option<String>,
    pending: Option<Value>,
    decisions: Option<Value>,
}

#[derive(Default)]
struct Channel {
    events: Mutex<(Vec<Value>, bool)>,
    changed: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

impl Java {
    /// Serves agents that act like this; returns the address.
    pub(super) async fn start(act: Act, version: Version) -> (String, Arc<Self>) {
        let (inputs, tasks, channels, changed) = Default::default();
        let java = Arc::new(Self { act, version, inputs, tasks, channels, changed });
        let routes = Router::new()
            .route("/tasks", post(submit))
            .route("/tasks/{id}", get(status))
            .route("/tasks/{id}/wait", get(wait))
            .route("/tasks/{id}/cancel", post(cancel))
            .route("/tasks/{id}/events", get(events))
            .route("/tasks/{id}/resume", post(resume))
            .with_state(java.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        (url, java)
    }

    fn channel(&self, task: &str) -> Arc<Channel> {
        lock(&self.channels).entry(task.to_owned()).or_default().clone()
    }

    fn is_running(&self, task: &str) -> bool {
        lock(&self.tasks)[task].status == "running"
    }

    fn publish(&self, task: &str, kind: &str, typed: Value, payload: Option<Value>) {
        if self.version == Version::Polled {
            return;
        }
        let channel = self.channel(task);
        let mut events = lock(&channel.events);
        let mut event = typed;
        event["seq"] = json!(events.0.len() + 1);
        event["type"] = json!(kind);
        event["taskId"] = json!(task);
        if let Some(payload) = payload.filter(|_| self.version != Version::Typed) {
            // Jackson writes the type twice.
            let text = payload.to_string();
            let twice = format!("{},\"type\":{}}}", text.strip_suffix('}').unwrap(), payload["type"]);
            event["eventType"] = payload["type"].clone();
            event["payload"] = json!(twice);
        }
        events.0.push(event);
        drop(events);
        channel.changed.notify_waiters();
    }

    /// Publishes an event of an agent.
    fn emit(&self, task: &str, payload: Value) {
        let call = || json!({ "toolCallId": payload["toolCallId"], "toolName": payload["toolCallName"] });
        let (kind, typed) = match payload["type"].as_str().unwrap() {
            "AGENT_START" => ("RUN_STARTED", json!({ "agentId": payload["name"] })),
            "AGENT_END" => ("RUN_FINISHED", json!({})),
            "TEXT_BLOCK_DELTA" => ("TEXT_DELTA", json!({ "text": payload["delta"] })),
            "THINKING_BLOCK_DELTA" => ("THINKING_DELTA", json!({ "text": payload["delta"] })),
            "TOOL_CALL_START" => ("TOOL_CALL_START", call()),
            "TOOL_CALL_END" => ("TOOL_CALL_END", call()),
            "TOOL_RESULT_END" => {
                let mut typed = call();
                typed["status"] = json!(payload["state"].as_str().unwrap().to_uppercase());
                ("TOOL_RESULT", typed)
            }
            "REQUIRE_USER_CONFIRM" => ("REQUIRE_CONFIRM", json!({ "pendingConfirms": pending() })),
            _ if self.version == Version::Typed => return,
            _ => ("AGENT_EVENT", json!({})),
        };
        self.publish(task, kind, typed, Some(payload));
    }

    fn say(&self, task: &str, text: &str) {
        self.emit(task, json!({ "type": "TEXT_BLOCK_DELTA", "blockId": "text", "delta": text }));
    }

    fn call(&self, task: &str, id: &str, at: &str) {
        let of = |kind: &str| json!({ "type": kind, "toolCallId": id, "toolCallName": "look" });
        self.emit(task, of("TOOL_CALL_START"));
        let mut delta = of("TOOL_CALL_DELTA");
        delta["delta"] = json!(json!({ "at": at }).to_string());
        self.emit(task, delta);
        self.emit(task, of("TOOL_CALL_END"));
    }

    fn result(&self, task: &str, id: &str, text: &str, state: &str) {
        let of = |kind: &str| json!({ "type": kind, "toolCallId": id, "toolCallName": "look" });
        self.emit(task, of("TOOL_RESULT_START"));
        let mut delta = of("TOOL_RESULT_TEXT_DELTA");
        delta["delta"] = json!(text);
        self.emit(task, delta);
        let mut end = of("TOOL_RESULT_END");
        end["state"] = json!(state);
        self.emit(task, end);
    }

    /// Runs the agent. Returns its answer.
    async fn act(&self, task: &str) -> Result<&'static str, &'static str> {
        if self.version != Version::Early {
            sleep(Duration::from_millis(100)).await;
        }
        self.emit(task, json!({ "type": "AGENT_START", "name": "worker", "replyId": "r" }));
        self.emit(task, json!({ "type": "MODEL_CALL_START", "replyId": "r" }));
        match self.act {
            Act::Answers => {
                self.emit(
                    task,
                    json!({ "type": "THINKING_BLOCK_DELTA", "blockId": "thinking", "delta": "Hm." }),
                );
                self.say(task, "Paris has ");
                self.say(task, "309 stations.");
                return Ok("Paris has 309 stations.");
            }
            Act::Calls => {
                for (id, at) in [("c1", "a"), ("c2", "b")] {
                    self.call(task, id, at);
                    self.result(task, id, &format!("at {at}"), "success");
                }
                // A reader that was cut comes back before the end.
                sleep(Duration::from_millis(300)).await;
            }
            Act::Delegates => {
                for kind in ["AGENT_START", "TEXT_BLOCK_DELTA", "AGENT_END"] {
                    self.emit(task, json!({
                        "type": kind, "source": format!("{task}/kid"), "name": "kid", "delta": "I am below.",
                    }));
                }
                self.say(task, "Done.");
                return Ok("Done.");
            }
            Act::Fails => return Err("the model is out of order"),
            Act::Slow => {
                self.say(task, "One ");
                sleep(Duration::from_millis(300)).await;
                self.say(task, "two.");
                return Ok("One two.");
            }
            Act::Hangs | Act::Silent => {
                if self.act == Act::Hangs {
                    self.say(task, "Half");
                }
                std::future::pending().await
            }
            _ => {
                self.call(task, "c1", "a");
                let is_allowed = self.pause(task).await;
                let (text, state) = if is_allowed { ("at a", "success") } else { ("denied", "denied") };
                self.result(task, "c1", text, state);
            }
        }
        self.emit(task, json!({ "type": "MODEL_CALL_START", "replyId": "r" }));
        self.say(task, "Seen.");
        Ok("Seen.")
    }

    /// The agent asks and ends; the server asks again, and runs it once more with the decisions.
    async fn pause(&self, task: &str) -> bool {
        let call = json!({ "type": "tool_use", "id": "c1", "name": "look", "input": { "at": "a" }, "state": "asking" });
        self.emit(task, json!({ "type": "REQUIRE_USER_CONFIRM", "toolCalls": [call] }));
        // An answer that comes too soon is refused.
        sleep(Duration::from_millis(50)).await;
        self.emit(task, json!({ "type": "AGENT_END", "replyId": "r" }));
        if let Some(state) = lock(&self.tasks).get_mut(task) {
            (state.status, state.pending) = ("awaiting_confirm", Some(pending()));
        }
        self.changed.notify_waiters();
        let typed = json!({ "pendingConfirms": pending(), "status": "awaiting_confirm" });
        self.publish(task, "REQUIRE_CONFIRM", typed, None);
        let decisions = loop {
            if let Some(decisions) = lock(&self.tasks).get_mut(task).and_then(|state| state.decisions.take())
            {
                break decisions;
            }
            sleep(Duration::from_millis(5)).await;
        };
        self.emit(task, json!({ "type": "AGENT_START", "name": "worker", "replyId": "r2" }));
        let approved = decisions.as_array().unwrap().iter().find(|one| one["toolCallId"] == "c1");
        approved.is_some_and(|one| one["approved"] == true)
    }

    async fn run(&self, task: String) {
        let ended = self.act(&task).await;
        if !self.is_running(&task) {
            return;
        }
        if ended.is_ok() {
            self.emit(&task, json!({ "type": "AGENT_END", "replyId": "r" }));
        }
        if let Some(state) = lock(&self.tasks).get_mut(&task) {
            match ended {
                Ok(result) => (state.status, state.result) = ("success", Some(result.to_owned())),
                Err(error) => (state.status, state.error) = ("error", Some(error.to_owned())),
            }
        }
        match ended {
            Ok(_) => self.publish(&task, "STATUS", json!({ "status": "success" }), None),
            Err(error) => {
                self.publish(&task, "RUN_ERROR", json!({ "status": "error", "error": error }), None)
            }
        }
        self.complete(&task);
    }

    fn complete(&self, task: &str) {
        if let Some(channel) = lock(&self.channels).remove(task) {
            lock(&channel.events).1 = true;
            channel.changed.notify_waiters();
        }
        self.changed.notify_waiters();
    }

    fn snapshot(&self, task: &str) -> Value {
        let tasks = lock(&self.tasks);
        let Some(state) = tasks.get(task) else {
            return json!({ "task_id": task, "status": "error", "error": "task not found" });
        };
        let mut snapshot = json!({ "task_id": task, "status": state.status });
        for (name, value) in [
            ("result", json!(state.result)),
            ("error", json!(state.error)),
            ("pending_confirms", json!(state.pending)),
        ] {
            if !value.is_null() {
                snapshot[name] = value;
            }
        }
        snapshot
    }
}

fn pending() -> Value {
    json!([{ "toolCallId": "c1", "toolName": "look", "toolInputJson": "{\"at\":\"a\"}" }])
}

async fn submit(State(java): State<Arc<Java>>, Json(body): Json<Value>) -> Response {
    let task = body["task_id"].as_str().unwrap().to_owned();
    let known = lock(&java.tasks).get(&task).map(|state| state.status);
    if matches!(known, Some("success" | "error" | "cancelled")) {
        let error = json!({ "error": format!("task_id already finished: {task}") });
        return (StatusCode::CONFLICT, Json(error)).into_response();
    }
    if known.is_none() {
        lock(&java.inputs).push(body["input"].as_str().unwrap().to_owned());
        let (result, error, pending, decisions) = Default::default();
        lock(&java.tasks).insert(task.clone(), Task { status: "running", result, error, pending, decisions });
        let (java, task) = (java.clone(), task.clone());
        #[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
        tokio::spawn(async move { java.run(task).await });
    }
    Json(json!({ "task_id": task, "status": "pending" })).into_response()
}

async fn status(State(java): State<Arc<Java>>, Path(task): Path<String>) -> Json<Value> {
    Json(java.snapshot(&task))
}

async fn wait(State(java): State<Arc<Java>>, Path(task): Path<String>) -> Json<Value> {
    for _ in 0..200 {
        let snapshot = java.snapshot(&task);
        if snapshot["status"] != "running" {
            return Json(snapshot);
        }
        sleep(Duration::from_millis(20)).await;
    }
    Json(json!({ "status": "error", "error": "wait timeout after 4000 ms" }))
}

/// A cancel does not stop the agent.
async fn cancel(State(java): State<Arc<Java>>, Path(task): Path<String>) -> StatusCode {
    if let Some(state) = lock(&java.tasks).get_mut(&task).filter(|state| state.result.is_none()) {
        state.status = "cancelled";
    }
    java.complete(&task);
    StatusCode::OK
}

async fn resume(
    State(java): State<Arc<Java>>,
    Path(task): Path<String>,
    Json(body): Json<Value>,
) -> Response {
    let mut tasks = lock(&java.tasks);
    let Some(state) = tasks.get_mut(&task).filter(|state| state.status == "awaiting_confirm") else {
        let error = json!({ "error": format!("task is not awaiting confirmation: {task}") });
        return (StatusCode::CONFLICT, Json(error)).into_response();
    };
    (state.status, state.pending, state.decisions) = ("running", None, Some(body["decisions"].clone()));
    Json(json!({ "task_id": task, "status": "running" })).into_response()
}

async fn events(
    State(java): State<Arc<Java>>,
    Path(task): Path<String>,
    Query(params): Query<HashMap<String, u64>>,
) -> Response {
    if java.version == Version::Polled {
        let error = json!({ "error": "streaming is disabled" });
        return (StatusCode::INTERNAL_SERVER_ERROR, Json(error)).into_response();
    }
    let from = params.get("from_seq").copied().unwrap_or(0) as usize;
    let next = |(channel, at): (Arc<Channel>, usize)| async move {
        loop {
            {
                let events = lock(&channel.events);
                if let Some(event) = events.0.get(at) {
                    let frame = Event::default()
                        .id(event["seq"].to_string())
                        .event(event["type"].as_str().unwrap())
                        .data(event.to_string());
                    drop(events);
                    return Some((Ok::<_, Infallible>(frame), (channel, at + 1)));
                }
                if events.1 {
                    return None;
                }
            }
            let _ = tokio::time::timeout(Duration::from_millis(20), channel.changed.notified()).await;
        }
    };
    Sse::new(Box::pin(stream::unfold((java.channel(&task), from), next))).into_response()
}
