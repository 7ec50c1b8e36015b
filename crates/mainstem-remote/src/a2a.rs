//! Agent2Agent 1.0: an agent of any server that has a card.

mod ask;
mod card;
mod driver;
mod losses;
mod mirror;
mod reading;
mod remote_id;
mod wire;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use mainstem_a2a::{
    extension::{Metadata, URI},
    sdk::{Message, Part, Role, Task},
};
use mainstem_event::{CancelReason, Decision, fold::RecordedTurn};
use mainstem_message::{ConfirmId, SessionId, ToolCallId};
use mainstem_outbound::Reach;
use mainstem_spec::Protocol;
use mainstem_tool::ToolOutput;
use serde_json::json;
use tokio::sync::mpsc;

use self::{
    driver::{Driver, Said},
    mirror::Mirror,
    reading::Reading,
    remote_id::RemoteId,
    wire::Wire,
};
use crate::{
    BegunTurn, RemoteAgent, RemoteControl, RemoteError, RemoteTurn,
    declaration::{About, Declaration, Declared},
    http::Connection,
    mainstem::options,
};

/// Why a turn that is found again is not repeated.
const FALLBACK: &str = "the stream of an A2A task can't be read again from its beginning";

/// How many answers wait for their way to the remote.
const ANSWERS: usize = 64;

/// How many contexts are remembered that a server has named otherwise than it was asked to.
const CONTEXTS: usize = 1_024;

/// An agent of a server that speaks Agent2Agent 1.0, over JSON-RPC or HTTP+JSON.
///
/// The context of its tasks has the id of the child's session, so that a further message continues
/// the conversation; a server that names the context otherwise is followed in that. What the
/// protocol has no place for (levels, budgets) is not sent; in plan mode the agent is not asked.
///
/// The protocol has no replay. After a lost connection, and in a process that continues the turn of
/// another one, the task is read again: artifacts that grow at their end are shown once and
/// completely; of status messages those are shown that the server keeps in the history; what came
/// and went between the two is lost. A Mainstem server has all events under an extension, those of
/// the agents below it too; then nothing is lost.
#[derive(Clone, Debug)]
pub struct A2aAgent {
    connection: Connection,
    contexts: Arc<Mutex<Contexts>>,
}

/// The contexts that servers have named, the oldest first.
type Contexts = std::collections::VecDeque<(SessionId, String)>;

impl A2aAgent {
    /// Creates the agent whose card is at a URL, or at `/.well-known/agent-card.json` below it or
    /// on its host.
    ///
    /// # Errors
    /// The URL is not valid, or out of reach.
    pub fn at(url: &str, reach: &Reach) -> Result<Self, RemoteError> {
        Ok(Self { connection: Connection::at(url, reach)?, contexts: Arc::default() })
    }

    /// Adds a header to every request. Messages do not show its value.
    ///
    /// # Errors
    /// The name or the value is not valid in a header.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, RemoteError> {
        self.connection = self.connection.with_header(name, value)?;
        Ok(self)
    }

    /// Returns the context of a session's tasks.
    fn context(&self, session: &SessionId) -> String {
        let contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        let named = contexts.iter().find(|(of, _)| of == session).map(|(_, context)| context.clone());
        named.unwrap_or_else(|| session.to_string())
    }

    /// Remembers how a server names the context of a session.
    fn remember(&self, session: SessionId, context: String) {
        if context == *session.as_str() || context.is_empty() {
            return;
        }
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        contexts.retain(|(of, _)| *of != session);
        if contexts.len() == CONTEXTS {
            contexts.pop_front();
        }
        contexts.push_back((session, context));
    }
}

impl Declared for A2aAgent {
    const PROTOCOL: Protocol = Protocol::A2a;

    fn declared(declaration: &Declaration) -> Result<Self, RemoteError> {
        let Self { connection, contexts } = Self::at(&declaration.url, &declaration.reach)?;
        Ok(Self { connection: connection.with_headers(&declaration.headers)?, contexts })
    }

    async fn describe(&self) -> Result<Option<About>, RemoteError> {
        let card = card::find(&self.connection).await?;
        let skills: Vec<_> = card.skills.iter().map(|skill| skill.name.as_str()).collect();
        let skills =
            if skills.is_empty() { String::new() } else { format!("; skills: {}", skills.join(", ")) };
        Ok(Some(Ok(format!("{} {}: {}{skills}", card.name, card.version, card.description))))
    }
}

#[async_trait]
impl RemoteAgent for A2aAgent {
    async fn begin(&self, turn: RemoteTurn) -> Result<BegunTurn, RemoteError> {
        let (name, wire) = self.reached(&turn).await?;
        let message = self.message(&turn);
        if wire.has_events() {
            return Ok(mirrored(Mirror::begin(wire, message).await?));
        }
        turn.check_plan_mode("A2A")?;
        let (control, said) = Control::new(wire.clone());
        let begun = Driver::begin(wire.clone(), &name, message.clone(), control.task.clone(), said).await;
        let (driver, control) = match begun {
            Ok(driver) => (driver, control),
            Err(lost @ (RemoteError::Unreachable { .. } | RemoteError::Ended)) => {
                let task = search(&wire, &message).await.map_err(|_| lost)?;
                found(wire, &task, Reading::begun(&name, task.clone()))
            }
            Err(error) => return Err(error),
        };
        self.remember(turn.session, driver.context().to_owned());
        Ok(driven(driver, control))
    }

    fn can_find(&self) -> bool {
        true
    }

    async fn find(&self, turn: RemoteTurn, recorded: &RecordedTurn) -> Result<BegunTurn, RemoteError> {
        let (name, wire) = self.reached(&turn).await?;
        let id = recorded.latest_remote_id().and_then(RemoteId::parse);
        let task = match id {
            // A server of ours begins the task of a message once.
            None if wire.has_events() => {
                return Ok(mirrored(Mirror::again(wire, self.message(&turn)).await?));
            }
            Some(RemoteId { task, event: Some(_) }) if wire.has_events() => {
                return Ok(mirrored(Mirror::of(wire, task)));
            }
            Some(RemoteId { task, .. }) => task.to_owned(),
            None => search(&wire, &self.message(&turn)).await?,
        };
        let reading = Reading::recorded(&name, task.clone(), &recorded.own);
        let (driver, control) = found(wire, &task, reading);
        Ok(driven(driver, control).with_fallback(FALLBACK))
    }
}

impl A2aAgent {
    /// Reads the card of the agent: its name, and the interface that is used.
    async fn reached(&self, turn: &RemoteTurn) -> Result<(String, Wire), RemoteError> {
        let card = card::find(&self.connection).await?;
        let interface = card::interface(&self.connection, &card)?;
        let metadata = metadata(turn, interface.has_events);
        let connection = self.connection.of_trace(turn.trace_parent.as_deref());
        Ok((card.name, Wire::new(connection, interface, metadata)))
    }

    /// Returns the message that begins a turn.
    fn message(&self, turn: &RemoteTurn) -> Message {
        Message {
            message_id: turn.id.to_string(),
            context_id: Some(self.context(&turn.session)),
            ..Message::new(Role::User, vec![Part::text(&turn.task)])
        }
    }
}

/// Returns what messages say besides their text. The protocol has no field for a user, rules or a
/// budget; a server of ours takes them under its extension.
fn metadata(turn: &RemoteTurn, has_extension: bool) -> Metadata {
    if has_extension {
        return [(URI.to_owned(), json!({ "options": options(turn) }))].into();
    }
    turn.metadata().into_iter().collect()
}

/// Returns the task that a message has begun.
///
/// # Errors
/// The server can't tell, or has no such task.
async fn search(wire: &Wire, message: &Message) -> Result<String, RemoteError> {
    let unknown = |why: &str| {
        wire.connection().refusal(&format!(
            "the process that began the turn ended before it knew the task, and {why}; the message is not \
             sent again, because the task would run twice"
        ))
    };
    let context = message.context_id.as_deref().unwrap_or_default();
    let tasks = match wire.list(context).await {
        Err(RemoteError::Refused { .. } | RemoteError::Invalid { .. }) => {
            return Err(unknown("the server can't list its tasks"));
        }
        tasks => tasks?,
    };
    let is_it =
        |begun: &&Task| begun.history.iter().flatten().any(|known| known.message_id == message.message_id);
    let task = tasks.iter().find(is_it).map(|task| task.id.clone());
    task.ok_or_else(|| unknown("the server shows no task of its message"))
}

/// Returns what follows and steers a task that has begun.
fn found(wire: Wire, task: &str, reading: Reading) -> (Driver, Control) {
    let (control, said) = Control::new(wire.clone());
    let _ = control.task.set(task.to_owned());
    (Driver::found(wire, reading, control.task.clone(), said), control)
}

fn mirrored(mirror: Mirror) -> BegunTurn {
    let control = Arc::new(mirror.control());
    let events = stream::unfold(mirror, |mut mirror| async move {
        let event = mirror.next().await?;
        Some((event, mirror))
    });
    BegunTurn::new(events.boxed(), control)
}

fn driven(driver: Driver, control: Control) -> BegunTurn {
    let events = stream::unfold(driver, |mut driver| async move {
        let event = driver.next().await?;
        Some((event, driver))
    });
    BegunTurn::new(events.boxed(), Arc::new(control))
}

/// Steers a task.
struct Control {
    wire: Wire,
    /// Unset if the server answered without a task.
    task: Arc<OnceLock<String>>,
    answers: mpsc::Sender<Said>,
}

impl Control {
    /// Creates the control of a task, and the receiver of what it says.
    fn new(wire: Wire) -> (Self, mpsc::Receiver<Said>) {
        let (answers, said) = mpsc::channel(ANSWERS);
        (Self { wire, task: Arc::default(), answers }, said)
    }

    async fn say(&self, said: Said) -> Result<(), RemoteError> {
        self.answers.send(said).await.map_err(|_| RemoteError::Ended)
    }
}

#[async_trait]
impl RemoteControl for Control {
    async fn cancel(&self, _: &CancelReason) -> Result<(), RemoteError> {
        let Some(task) = self.task.get() else { return Ok(()) };
        let task = self.wire.cancel(task).await?;
        // The events may be dropped already: then this is all that there is to do.
        let _ = self.say(Said::Task(Box::new(task))).await;
        Ok(())
    }

    async fn confirm(&self, id: &ConfirmId, decision: Decision) -> Result<(), RemoteError> {
        self.say(Said::Decided(id.clone(), decision)).await
    }

    async fn submit(&self, call: &ToolCallId, output: ToolOutput) -> Result<(), RemoteError> {
        let (text, is_error) = ask::text_of(output);
        self.say(Said::Result { call: call.clone(), text, is_error }).await
    }
}
