//! Messages of clients: they begin tasks, or answer what a task waits for.

use std::sync::Arc;

use mainstem::{event::Cursor, message::Message, session::FoundRun};
use mainstem_a2a::{
    TaskFold, TaskStream,
    answer::{self, Answer as Reply},
    extension::{Metadata, URI},
    input,
    sdk::{SendMessageConfiguration, SendMessageRequest, SendMessageResponse, new_context_id},
};
use mainstem_api::{AnySession, Input, NewRun, NewToolResult, OnDisconnect, RunOptions};
use serde::Deserialize;

use super::{
    Call, push,
    refusal::Refusal,
    rpc::Answer,
    tasks::{self, history},
};
use crate::{
    body::Digest,
    feed::{Subscription, respond},
    problem::Problem,
    readers::ReaderPermit,
    runs::{self, BegunRun, NewRunOf},
};

/// How the answer shows the task.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    /// As it is now.
    AtOnce,
    /// Once it is over or waits for its client.
    Settled,
    Streamed,
}

/// `SendMessage`.
pub(super) async fn send(call: &Call, request: SendMessageRequest) -> Result<Answer, Refusal> {
    let returns = request.configuration.as_ref().and_then(|given| given.return_immediately);
    take(call, request, if returns == Some(true) { Shown::AtOnce } else { Shown::Settled }).await
}

/// `SendStreamingMessage`.
pub(super) async fn stream(call: &Call, request: SendMessageRequest) -> Result<Answer, Refusal> {
    take(call, request, Shown::Streamed).await
}

async fn take(call: &Call, mut request: SendMessageRequest, shown: Shown) -> Result<Answer, Refusal> {
    let configuration = request.configuration.take();
    let history = history(configuration.as_ref().and_then(|given| given.history_length))?;
    let config =
        configuration.and_then(|SendMessageConfiguration { task_push_notification_config, .. }| {
            task_push_notification_config
        });
    let message = &request.message.message_id;
    let config = config.map(|config| push::check(call, config, message)).transpose()?;
    let task = request.message.task_id.clone().filter(|id| !id.is_empty());
    let taken = match task {
        Some(task) => {
            let run = call.app.run(&call.caller, &task).await?;
            config.as_ref().map_or(Ok(()), |config| push::has_room(call, &run, config))?;
            answer(call, run, request, shown).await?
        }
        None => begin(call, request, shown).await?,
    };
    // A message that is refused leaves no configuration.
    config.map_or(Ok(()), |config| push::add(call, &taken.run, config))?;
    call.caller.release_permit();
    show(call, taken, shown, history).await
}

/// A task that has taken a message.
struct Taken {
    run: FoundRun,
    fold: TaskFold,
    /// After the events of the fold.
    cursor: Cursor,
    reader: Option<ReaderPermit>,
}

/// What a client of ours says of the task, under the extension.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Given {
    options: RunOptions,
}

/// Begins a task.
async fn begin(call: &Call, request: SendMessageRequest, shown: Shown) -> Result<Taken, Refusal> {
    let SendMessageRequest { message, metadata, tenant, .. } = request;
    let input = input::from_message(&message);
    let input = input.ok_or_else(|| Refusal::invalid("the role of a message to an agent is ROLE_USER"))?;
    let context = message.context_id.clone().filter(|id| !id.is_empty());
    // A message that is sent again does not begin a second task. This needs a context: the id of a
    // message is unique in its context only.
    let key = context.as_ref().map(|context| once(context, &message.message_id));
    // Its metadata has another order each time.
    let mut body = serde_json::to_value(&message).unwrap_or_default();
    body.sort_all_objects();
    let digest = Digest::of(&message.message_id, body.to_string().as_bytes());
    let run = new_run(call, input.clone(), metadata.unwrap_or_default(), tenant)?;
    let session = context.unwrap_or_else(new_context_id);
    let is_read = shown != Shown::AtOnce;
    let request = NewRunOf { session: &session, run, key: key.map(|key| (key, &digest)), is_read };
    let BegunRun { run, is_new, reader } = request.begin(&call.app, &call.caller).await?;
    runs::until_recorded(&run).await;
    let (fold, cursor) = if is_new {
        let fold = TaskFold::new(run.id().as_str(), run.session().id().as_str()).with_input(&input);
        (fold.with_extension(call.extension()), run.session().log().committed_from(run.first()))
    } else {
        tasks::fold(&run, call.extension()).await
    };
    Ok(Taken { run, fold, cursor, reader })
}

fn new_run(
    call: &Call,
    input: Message,
    mut metadata: Metadata,
    tenant: Option<String>,
) -> Result<NewRun, Refusal> {
    let given = metadata.remove(URI).filter(|_| call.wants_extension).map(serde_json::from_value).transpose();
    let invalid = |error| Refusal::invalid(format!("the metadata under {URI}: {error}"));
    let Given { mut options } = given.map_err(invalid)?.unwrap_or_default();
    let most = call.caller.harness.limits().max_depth;
    options.max_depth = options.max_depth.map(|depth| depth.min(most));
    options.attributes.extend(metadata);
    // A task goes on without its reader.
    options.on_disconnect = OnDisconnect::default();
    Ok(NewRun {
        agent: tenant.filter(|agent| !agent.is_empty()),
        input: Some(Input(input)),
        // A context can have several tasks; those of a session take turns.
        queue: true,
        options,
        ..NewRun::default()
    })
}

/// Returns the key of a message's idempotency.
fn once(context: &str, message: &str) -> String {
    format!("a2a:{}", Digest::of(context, message.as_bytes()))
}

/// Answers what a task waits for.
async fn answer(
    call: &Call,
    run: FoundRun,
    request: SendMessageRequest,
    shown: Shown,
) -> Result<Taken, Refusal> {
    let (message, id) = (request.message, run.id().as_str());
    let context = message.context_id.as_deref().filter(|context| !context.is_empty());
    if context.is_some_and(|context| context != run.session().id().as_str()) {
        return Err(Refusal::invalid(format!("task {id:?} is not of this context")));
    }
    let (mut fold, cursor) = tasks::fold(&run, call.extension()).await;
    if fold.is_over() {
        let why = format!("task {id:?} is over; send a message to its context without `taskId`");
        return Err(Refusal::unsupported(why));
    }
    if fold.pending().is_empty() {
        let why = format!("task {id:?} is working, and takes messages only while it requires input");
        return Err(Refusal::unsupported(why));
    }
    let replies = answer::answers(&message, fold.pending())?;
    let reader = (shown != Shown::AtOnce)
        .then(|| ReaderPermit::acquire(&call.app, &call.caller, run.session()))
        .transpose()?;
    for reply in replies {
        fold.answered(&reply);
        give(&run, reply).await?;
    }
    Ok(Taken { run, fold, cursor, reader })
}

/// Gives an answer to the agent that waits for it.
async fn give(run: &FoundRun, reply: Reply) -> Result<(), Problem> {
    let session = run.session();
    match reply {
        Reply::Decided(id, decision) => {
            let given = session.confirm(&id, decision);
            given.map_err(|error| mainstem::session::refusal::no_answer(&error).into())
        }
        Reply::Result { call, content, is_error } => {
            Ok(AnySession::submit(session, &call, &NewToolResult { content, is_error }).await?)
        }
    }
}

async fn show(call: &Call, taken: Taken, shown: Shown, history: Option<usize>) -> Result<Answer, Refusal> {
    let Taken { run, mut fold, cursor, reader } = taken;
    match (shown, reader) {
        (Shown::Streamed, Some(permit)) => {
            Ok(follow(call, &run, fold.into_stream(call.framing.clone()), cursor, permit))
        }
        (Shown::Settled, _permit) => {
            tasks::settle(&call.app, &mut fold, cursor).await?;
            Ok(Answer::json(SendMessageResponse::Task(fold.task(history))))
        }
        _ => Ok(Answer::json(SendMessageResponse::Task(fold.task(history)))),
    }
}

/// Streams a task from a state on.
pub(super) fn follow(
    call: &Call,
    run: &FoundRun,
    encoder: TaskStream,
    cursor: Cursor,
    permit: ReaderPermit,
) -> Answer {
    // A run of an ended process gets no further events.
    let follow = run.handle().is_some();
    let subscription = Subscription { follow, ..Subscription::to(runs::until(run)) };
    let app: &Arc<_> = &call.app;
    Answer::Stream(respond(app, cursor, Box::new(encoder), subscription, permit, None))
}
