//! Drives one turn of a remote agent: the only place of this crate that waits for it.

mod answers;
mod cancel;

use std::{future::pending, panic::AssertUnwindSafe, pin::Pin, sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt, future::Shared};
use mainstem_event::{ConfirmResult, Decision, Outcome, fold::RecordedTurn};
use mainstem_message::{ConfirmId, Message, ReplyId, ToolCall};
use mainstem_react::{AgentError, RunContext, RunOutcome};
use mainstem_subagent::{Fleet, TurnInput};
use tokio::{
    sync::oneshot,
    time::{Sleep, sleep},
};

use self::{
    answers::{Answers, Asked, arrived},
    cancel::{Beginning, CancelOnDrop, is_executor, reason, report},
};
use crate::{
    BegunTurn, RemoteControl, RemoteError, RemoteEvent, RemoteRunner, RemoteTurn,
    admission::{Admission, Admitted, ROOT},
    invocations::Invocations,
};

/// How long a remote has to end its turn after it was asked to stop.
const GRACE: Duration = Duration::from_secs(2);

/// Runs a turn from its `AGENT_START` to its `AGENT_END`. One that another process has begun is
/// read again from its beginning, and goes on behind what is recorded.
pub(crate) async fn run(
    runner: RemoteRunner,
    input: TurnInput,
    recorded: Option<RecordedTurn>,
) -> RunOutcome {
    let TurnInput { cx, task, history, mut watchdog, .. } = input;
    let recorded = recorded.map(Arc::new);
    let mut invocations = match &recorded {
        None => Invocations::open(cx.clone(), &runner.name, &task),
        Some(recorded) => Invocations::recorded(cx.clone(), recorded),
    };
    let work = async {
        let watched = async {
            watchdog.as_mut().await;
            pending::<()>().await;
        };
        tokio::select! {
            biased;
            result = drive(&runner, &cx, &mut invocations, recorded, request(&cx, task, history)) => result,
            () = watched => Err(AgentError::cancelled(&cx)),
        }
    };
    let result = AssertUnwindSafe(work).catch_unwind().await;
    let result = result.unwrap_or_else(|_| Err(AgentError::Panicked("in a remote agent's protocol".into())));
    invocations.close(result)
}

async fn drive(
    runner: &RemoteRunner,
    cx: &RunContext,
    invocations: &mut Invocations,
    recorded: Option<Arc<RecordedTurn>>,
    request: RemoteTurn,
) -> Result<Outcome, AgentError> {
    let result = follow(runner, cx, invocations, recorded, request).await;
    // The reason on this side is the better one.
    if result.is_err() && cx.is_cancelled() { Err(AgentError::cancelled(cx)) } else { result }
}

async fn follow(
    runner: &RemoteRunner,
    cx: &RunContext,
    invocations: &mut Invocations,
    recorded: Option<Arc<RecordedTurn>>,
    request: RemoteTurn,
) -> Result<Outcome, AgentError> {
    let request = RemoteTurn { trace_parent: runner.trace.trace_parent(), ..request };
    let agent = runner.agent.clone();
    let mut admission = Admission::new(request.session.clone(), request.levels);
    let known = recorded.clone();
    let mut begin = Beginning::new(cx, async move {
        match known {
            Some(recorded) => agent.find(request, &recorded).await,
            None => agent.begin(request).await,
        }
    });
    let BegunTurn { mut events, control, fallback } = tokio::select! {
        biased;
        () = cx.cancelled() => return Err(AgentError::cancelled(cx)),
        begun = begin.wait() => begun?,
    };
    let cancel_on_drop = CancelOnDrop { control: Some(control.clone()), cx };
    if let (Some(reason), Some(recorded)) = (fallback, recorded) {
        invocations.fall_back(&recorded.own, reason);
        admission.skip_to(&recorded.own);
    }
    let (answers, deferred, stopping) = Default::default();
    let mut turn = Turn { cx, invocations, admission, control, answers, deferred, stopping };
    loop {
        tokio::select! {
            biased;
            local = turn.local_event() => match local {
                LocalEvent::Cancelled => turn.stop(),
                LocalEvent::OutOfGrace => return Err(AgentError::cancelled(cx)),
                LocalEvent::Answered(sent) => sent?,
            },
            event = events.next() => {
                let event = event.ok_or(RemoteError::Ended)?;
                if let Some(result) = turn.take(event?)? {
                    cancel_on_drop.disarm();
                    return result;
                }
                settle(cx).await;
            }
        }
    }
}

fn request(cx: &RunContext, task: String, history: Vec<Arc<Message>>) -> RemoteTurn {
    RemoteTurn {
        session: cx.session_id().clone(),
        id: cx.sink().origin().reply_id.clone().unwrap_or_else(|| ReplyId::from_lossy(cx.new_id("reply-"))),
        task,
        history,
        user: cx.user().map(Arc::from),
        attributes: cx.attributes().clone(),
        levels: Fleet::levels_below(cx),
        budget: Fleet::budget_left(cx),
        rules: Fleet::rules(cx),
        plan_mode: Fleet::is_planning(cx),
        is_attended: Fleet::is_attended(cx),
        trace_parent: None,
    }
}

/// A turn that has begun at the remote.
struct Turn<'a> {
    cx: &'a RunContext,
    invocations: &'a mut Invocations,
    admission: Admission,
    control: Arc<dyn RemoteControl>,
    answers: Answers,
    /// What the remote asked for while its events are those of the record.
    deferred: Vec<Request>,
    /// How long the remote still has, once it was asked to stop.
    stopping: Option<Pin<Box<Sleep>>>,
}

/// What a remote asks for: an approval, if it has an id, or the results of calls.
struct Request {
    invocation: usize,
    id: Option<ConfirmId>,
    calls: Vec<ToolCall>,
}

/// What happens on this side.
enum LocalEvent {
    Cancelled,
    OutOfGrace,
    /// An answer was sent.
    Answered(Result<(), RemoteError>),
}

impl Turn<'_> {
    /// Waits for this side: a cancel, once, then the end of the remote's grace; or an answer.
    async fn local_event(&mut self) -> LocalEvent {
        let Self { cx, answers, stopping, .. } = self;
        let stop = async {
            match stopping {
                None => {
                    cx.cancelled().await;
                    LocalEvent::Cancelled
                }
                Some(grace) => {
                    grace.as_mut().await;
                    LocalEvent::OutOfGrace
                }
            }
        };
        tokio::select! {
            biased;
            stop = stop => stop,
            sent = answers.next() => LocalEvent::Answered(sent),
        }
    }

    /// Asks the remote to stop.
    fn stop(&mut self) {
        self.stopping = Some(Box::pin(sleep(GRACE)));
        let (control, cx) = (self.control.clone(), self.cx.clone());
        self.answers.add(ROOT, None, async move {
            if is_executor(&cx).await {
                report(control.cancel(&reason(&cx)).await);
            }
            Ok(())
        });
    }

    /// Takes in an event; returns the end of the turn.
    fn take(&mut self, mut event: RemoteEvent) -> Result<Option<Result<Outcome, AgentError>>, AgentError> {
        let id = event.id.take();
        match self.admission.admit(event)? {
            Admitted::Nothing => {}
            Admitted::Start { parent, caller, source, name, input } => {
                self.invocations.start(parent, caller, *source, &name, input)?;
            }
            Admitted::Emit { invocation, kind } => self.invocations.emit(invocation, kind, id)?,
            Admitted::End { invocation: ROOT, outcome, error } => {
                return Ok(Some(self.invocations.ended(ROOT, outcome, error)?));
            }
            Admitted::End { invocation, outcome, error } => {
                self.answers.withdraw_of(invocation);
                self.invocations.end(invocation, outcome, error)?;
            }
            Admitted::Ask { invocation, id, calls } => {
                self.deferred.push(Request { invocation, id: Some(id), calls });
            }
            Admitted::Answered { id, results } => {
                self.deferred.retain(|request| request.id.as_ref() != Some(&id));
                self.answers.decided_elsewhere(&id, results);
            }
            Admitted::Executed { results } => {
                let has_result = |call: &ToolCall| results.iter().any(|one| one.tool_call_id == call.id);
                for request in self.deferred.iter_mut().filter(|request| request.id.is_none()) {
                    request.calls.retain(|call| !has_result(call));
                }
                results.into_iter().for_each(|result| self.answers.executed_elsewhere(result));
            }
            Admitted::Execute { invocation, calls } => {
                self.deferred.push(Request { invocation, id: None, calls });
            }
        }
        if !self.deferred.is_empty() && !self.invocations.are_repeated() {
            self.pass_on();
        }
        Ok(None)
    }

    /// Passes on what the remote has asked for and still waits for.
    fn pass_on(&mut self) {
        for Request { invocation, id, mut calls } in std::mem::take(&mut self.deferred) {
            let is_about_calls = !calls.is_empty();
            calls.retain(|call| self.admission.is_open(invocation, &call.id));
            match id {
                _ if is_about_calls && calls.is_empty() => {}
                Some(id) => self.ask(invocation, id, calls),
                None => self.execute(invocation, calls),
            }
        }
    }

    /// Asks a person here, and tells the remote.
    fn ask(&mut self, invocation: usize, id: ConfirmId, calls: Vec<ToolCall>) {
        let (cx, control, request) =
            (self.invocations.context(invocation).clone(), self.control.clone(), id.clone());
        let (decided, elsewhere) = oneshot::channel();
        let answer = async move {
            match decide(&cx, calls, elsewhere).await {
                Some(decision) => arrived(control.confirm(&request, decision).await),
                None => Ok(()),
            }
        };
        self.answers.add(invocation, Some(Asked::Approval(id, decided)), answer);
    }

    /// Lets the caller run calls, and returns their results to the remote.
    fn execute(&mut self, invocation: usize, calls: Vec<ToolCall>) {
        for call in calls {
            let (cx, control) = (self.invocations.context(invocation).clone(), self.control.clone());
            let (done, elsewhere) = oneshot::channel();
            let asked = Asked::Result(call.id.clone(), done);
            self.answers.add(invocation, Some(asked), async move {
                let (id, elsewhere) = (call.id.clone(), elsewhere.shared());
                let output = Fleet::run_externally(&cx, call, given(elsewhere.clone())).await;
                match output.filter(|_| !matches!(elsewhere.peek(), Some(Ok(_)))) {
                    Some(output) => arrived(control.submit(&id, output).await),
                    None => Ok(()),
                }
            });
        }
    }
}

/// Waits for the reader of the run, so that the remote is read no faster.
async fn settle(cx: &RunContext) {
    tokio::select! {
        biased;
        () = cx.cancelled() => {}
        () = cx.settle() => {}
    }
}

/// Asks about each call of a request; all are allowed or none. Edited arguments belong to one call,
/// so a request about several can't be allowed with them. Returns `None` if the request is answered
/// elsewhere first.
async fn decide(
    cx: &RunContext,
    calls: Vec<ToolCall>,
    elsewhere: oneshot::Receiver<Vec<ConfirmResult>>,
) -> Option<Decision> {
    if calls.is_empty() {
        return Some(Decision::Deny("the request names no call".to_owned()));
    }
    let is_single = calls.len() == 1;
    let elsewhere = elsewhere.shared();
    let mut decision = Decision::Allow;
    for call in calls {
        let (asked, answered) = (call.clone(), given(elsewhere.clone()));
        let decided = async move { decision_about(&asked, &answered.await) };
        let made = Fleet::ask(cx, call, decided).await;
        if matches!(elsewhere.peek(), Some(Ok(_))) {
            continue;
        }
        decision = match made {
            Decision::AllowWith(_) if !is_single => {
                Decision::Deny("the arguments of one of several calls can't be edited".to_owned())
            }
            made => made,
        };
        if let Decision::Deny(_) = decision {
            break;
        }
    }
    let is_elsewhere = matches!(elsewhere.peek(), Some(Ok(_)));
    (!is_elsewhere).then_some(decision)
}

/// Waits for what is given elsewhere. A request that is withdrawn with its invocation never is.
async fn given<T: Clone>(elsewhere: Shared<oneshot::Receiver<T>>) -> T {
    match elsewhere.await {
        Ok(given) => given,
        Err(_) => pending().await,
    }
}

/// Returns the decision about a call in the answer to a request.
fn decision_about(call: &ToolCall, results: &[ConfirmResult]) -> Decision {
    match results.iter().find(|result| result.tool_call.id == call.id) {
        Some(result) if result.confirmed && result.tool_call.arguments == call.arguments => Decision::Allow,
        Some(result) if result.confirmed => {
            Decision::AllowWith(serde_json::from_str(&result.tool_call.arguments).unwrap_or_default())
        }
        Some(ConfirmResult { reason: Some(reason), .. }) => Decision::Deny(reason.clone()),
        Some(_) => Decision::Deny("it was denied at the remote".to_owned()),
        None => Decision::Deny("another client has answered, and the remote does not say how".to_owned()),
    }
}
