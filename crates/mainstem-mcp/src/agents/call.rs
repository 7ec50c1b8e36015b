//! One call: a run of an agent, read to its end.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use mainstem_api::{AnyRun, AnySession, Begun, Events, NewRun, RunOptions};
use mainstem_event::{AgentEvent, Background, CancelReason, EventKind, Outcome};
use mainstem_message::Failure;
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, ContentBlock, ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::{AgentHost, approval, progress::Progress};

/// How long a run has to end after its call was cancelled.
const GRACE: Duration = Duration::from_secs(5);

/// The arguments of a call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    task: String,
    session: Option<String>,
}

/// A call of an agent.
pub(super) struct AgentCall<'a> {
    pub(super) host: &'a dyn AgentHost,
    pub(super) agent: &'a str,
    pub(super) arguments: Arguments,
    pub(super) cx: &'a RequestContext<RoleServer>,
}

impl AgentCall<'_> {
    /// Runs the agent; a failure of the agent is a result.
    ///
    /// # Errors
    /// The client has cancelled the call.
    pub(super) async fn run(self) -> Result<CallToolResult, ErrorData> {
        let Arguments { task, session } = &self.arguments;
        if task.trim().is_empty() {
            return Err(ErrorData::invalid_params("`task` is empty", None));
        }
        let options = RunOptions {
            approval: Some(approval::can_ask(&self.cx.peer)),
            background: Background::Wait,
            ..RunOptions::default()
        };
        let run =
            NewRun { agent: Some(self.agent.to_owned()), ..NewRun::new(task.as_str()).with_options(options) };
        let (session, begun) = match self.host.begin(session.as_deref(), run).await {
            Ok(begun) => begun,
            Err(error) => return Ok(failed(&error.to_string())),
        };
        self.follow(&session, begun).await
    }

    async fn follow(&self, session: &Arc<dyn AnySession>, begun: Begun) -> Result<CallToolResult, ErrorData> {
        let Begun { run, mut events } = begun;
        let mut reporter = Reporter::new(self.cx);
        let mut answers = FuturesUnordered::new();
        let (mut reply, mut ended) = (String::new(), None);
        loop {
            tokio::select! {
                biased;
                () = self.cx.ct.cancelled() => return Err(cancel(&*run, events).await),
                Some(()) = answers.next() => {}
                event = events.next() => match event {
                    Some(Ok(event)) => {
                        if let EventKind::RequireUserConfirm { confirm_id, tool_calls, .. } = &event.kind {
                            let (agent, calls) = (event.agent_label().to_owned(), tool_calls.clone());
                            let (session, id) = (session.clone(), confirm_id.clone());
                            let peer = self.cx.peer.clone();
                            answers.push(async move { approval::answer(&peer, &*session, &agent, id, &calls).await });
                        }
                        if let EventKind::AgentResult { result } = &event.kind && event.is_root() {
                            reply = result.text();
                        }
                        reporter.report(&event).await;
                        ended = Ended::of(&event).or(ended);
                    }
                    Some(Err(error)) => return Ok(failed(&error.to_string())),
                    None => break,
                },
            }
        }
        Ok(result(session.id().as_str(), reply, ended))
    }
}

/// How the agent has ended.
struct Ended {
    outcome: Outcome,
    error: Option<Failure>,
}

impl Ended {
    fn of(event: &AgentEvent) -> Option<Self> {
        match &event.kind {
            EventKind::AgentEnd { outcome, error, .. } if event.is_root() => {
                Some(Self { outcome: *outcome, error: error.clone() })
            }
            EventKind::RunCancelled { error, .. } => {
                Some(Self { outcome: Outcome::Cancelled, error: Some(error.clone()) })
            }
            _ => None,
        }
    }
}

/// Asks a run to stop, and reads it to its end.
async fn cancel(run: &dyn AnyRun, mut events: Events) -> ErrorData {
    let stop = async {
        // A run that can't be cancelled is dropped.
        let _ = run.cancel(CancelReason::user("the client cancelled the call")).await;
        while events.next().await.is_some() {}
    };
    let _ = timeout(GRACE, stop).await;
    ErrorData::internal_error("the call was cancelled", None)
}

fn failed(why: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why.to_owned())])
}

/// Returns the reply of an agent with its session; the error, if it has failed.
fn result(session: &str, reply: String, ended: Option<Ended>) -> CallToolResult {
    let outcome = ended.as_ref().map_or(Outcome::Error, |ended| ended.outcome);
    let error = ended.and_then(|ended| ended.error).map(|error| error.message);
    let has_failed = !matches!(outcome, Outcome::Success | Outcome::MaxIterations);
    let how = outcome.as_str();
    let text = match &error {
        Some(error) if reply.is_empty() => format!("{how}: {error}"),
        Some(error) if has_failed => format!("{reply}\n\n{how}: {error}"),
        _ => reply,
    };
    let structured = json!({ "session": session, "outcome": outcome, "error": error });
    let content = vec![ContentBlock::text(text), ContentBlock::text(format!("session: {session}"))];
    let mut result =
        if has_failed { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = Some(structured);
    result
}

/// Sends progress notifications, if the client asks for them.
struct Reporter<'a> {
    client: Option<(&'a Peer<RoleServer>, ProgressToken)>,
    progress: Progress,
    began: Instant,
    sent: u32,
}

impl<'a> Reporter<'a> {
    fn new(cx: &'a RequestContext<RoleServer>) -> Self {
        let client = cx.meta.get_progress_token().map(|token| (&cx.peer, token));
        Self { client, progress: Progress::default(), began: Instant::now(), sent: 0 }
    }

    async fn report(&mut self, event: &AgentEvent) {
        let Some((client, token)) = &self.client else { return };
        let Some(message) = self.progress.message(event, self.began.elapsed()) else { return };
        self.sent += 1;
        let progress =
            ProgressNotificationParam::new(token.clone(), f64::from(self.sent)).with_message(message);
        // A client that is gone closes its stream, which ends the call.
        let _ = client.notify_progress(progress).await;
    }
}
