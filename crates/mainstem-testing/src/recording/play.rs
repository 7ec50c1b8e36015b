//! Runs a recorded session again.

use std::{collections::HashMap, pin::pin, sync::Arc, time::Duration};

use futures_util::{
    StreamExt,
    future::{Either, join_all, select},
};
use mainstem::{
    Harness,
    event::{AgentEvent, CancelReason, Cursor, EventKind, RunSettings},
    message::{AgentKey, ConfirmId, Message},
    session::{RunHandle, RunOptions, RunRequest, Session},
    subagent::SpawnOptions,
    tool::ToolOutput,
};
use tokio::time::timeout;

use super::{
    schedule::Stage,
    script::{Act, Caller, Script, key_of},
};

/// How long the runs may go on after the end of the record.
const LONGEST: Duration = Duration::from_secs(3600);

/// How long after the end of the record background tasks may end.
const MARGIN: Duration = Duration::from_millis(100);

/// The session that plays.
struct Play {
    session: Session,
    cursor: Cursor,
    events: Vec<AgentEvent>,
    runs: Vec<RunHandle>,
    /// The questions so far, each about one call.
    questions: HashMap<Caller, ConfirmId>,
}

pub(super) async fn play(script: &Script, stage: &Stage, harness: &Harness) -> Vec<AgentEvent> {
    let session = harness.new_session();
    let cursor = session.subscribe_from(1);
    let mut play = Play { session, cursor, events: Vec::new(), runs: Vec::new(), questions: HashMap::new() };
    stage.begin();
    for (time, act) in &script.acts {
        play.read_until(stage.until(*time)).await;
        play.act(act).await;
    }
    play.read_until(stage.until(script.end + MARGIN)).await;
    let ends = join_all(play.runs.iter().map(RunHandle::outcome));
    // A run that waits for what is not in the record is cut off here, and then differs from it.
    play.read_until(timeout(LONGEST, ends)).await;
    while let Some(event) = play.cursor.try_next() {
        play.take(event);
    }
    play.events
}

impl Play {
    async fn act(&mut self, act: &Act) {
        match act {
            Act::Run { input, settings } => {
                let request = request(input, settings.as_deref());
                self.runs.push(self.session.queue(request).detach());
            }
            Act::Decide { call, decision } => {
                // A question that is not asked is a difference in its agent's events.
                let question = self.questions.get(call);
                question.map(|question| self.session.confirm(question, decision.clone()).ok());
            }
            Act::Submit { call, content, state } => {
                let output = ToolOutput::new(content.clone()).with_state(*state);
                _ = self.session.submit_tool_result(call, output);
            }
            Act::Send { to, text, mode } => _ = self.session.send(to, text.clone(), *mode),
            Act::CancelRun { how, with_tasks } => {
                let reason = CancelReason::User { how: how.as_deref().map(Arc::from) };
                match self.session.active() {
                    Some(run) if *with_tasks => run.cancel_with_tasks(reason),
                    Some(run) => run.cancel_because(reason),
                    None => {}
                }
            }
            Act::Cancel { key } => _ = self.session.cancel_agent(&AgentKey::from_lossy(key.clone())),
            Act::CancelTask { task, by } => {
                let tasks = self.session.task_set().clone();
                self.read_until(tasks.cancel(task, by, Duration::ZERO)).await;
            }
        }
    }

    /// Reads events until a future is ready: the log keeps only the latest ones.
    async fn read_until<T>(&mut self, ready: impl Future<Output = T>) {
        let mut ready = pin!(ready);
        while let Either::Right((Some(event), _)) = select(&mut ready, self.cursor.next()).await {
            self.take(event);
        }
    }

    fn take(&mut self, event: AgentEvent) {
        if let EventKind::RequireUserConfirm { confirm_id, tool_calls, .. } = &event.kind {
            for call in tool_calls {
                let caller = (key_of(&event).to_owned(), call.id.clone());
                self.questions.insert(caller, confirm_id.clone());
            }
        }
        self.events.push(event);
    }
}

fn request(input: &Arc<Message>, settings: Option<&RunSettings>) -> RunRequest {
    let mut options = RunOptions::new();
    if let Some(settings) = settings {
        options.spawn = SpawnOptions::from(settings);
        options.user.clone_from(&settings.user);
        options.attributes = settings.attributes.clone();
        let budget = &mut options.budget;
        (budget.tokens, budget.spawns) = (settings.budget.tokens, settings.budget.spawns);
        budget.time_seconds = settings.budget.time_seconds;
    }
    RunRequest::new(Message::clone(input)).with_options(options)
}
