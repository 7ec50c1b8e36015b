//! The part of an answer that was cut, before its turn is resumed.

use futures_util::TryStreamExt as _;
use mainstem::{
    api::{AnySession, EventQuery, RunView},
    event::{EventKind, fold::Transcript},
    message::{ContentBlock, Role, StopReason},
};

/// Returns what the root has said last, if its answer was cut: the model goes on behind it when the
/// turn is resumed. Of an answer that was cut several times, it has all parts. What can't be read
/// counts as nothing.
pub(super) async fn cut_reply(session: &dyn AnySession) -> Option<String> {
    let mut said = String::new();
    for run in session.runs().await.ok()?.iter().rev() {
        match ending(session, run).await? {
            // It goes on behind the run before if it is that one's turn, from its first answer.
            Ending::Cut { part, is_first } => {
                said.insert_str(0, &part);
                if !is_first || run.resumes.is_none() {
                    break;
                }
            }
            // The turn of another prompt, which failed before its first word.
            Ending::Nothing if run.resumes.is_none() => break,
            Ending::Nothing | Ending::NoTurn => {}
            Ending::Other => break,
        }
    }
    Some(said).filter(|said| !said.is_empty())
}

/// How a run ended.
enum Ending {
    /// In an answer of the root, of which this is the part.
    Cut { part: String, is_first: bool },
    /// Before an answer.
    Nothing,
    /// It never began, or has compacted the conversation.
    NoTurn,
    /// With its answer, or after a call of a tool.
    Other,
}

async fn ending(session: &dyn AnySession, run: &RunView) -> Option<Ending> {
    let query = EventQuery { depth: Some(0), ..EventQuery::stored() };
    let mut events = session.events(query.with_run(&run.id));
    let (mut turn, mut is_cut, mut answers) = (None::<Transcript>, false, Answers::default());
    while let Some(event) = events.try_next().await.ok()? {
        match (&event.kind, event.reply_id()) {
            (EventKind::AgentStart { settings: Some(settings), .. }, _) if settings.compacts => {
                return Some(Ending::NoTurn);
            }
            (EventKind::AgentStart { .. }, Some(reply)) => turn = Some(Transcript::new(reply.clone())),
            (EventKind::AgentResult { .. }, _) => return Some(Ending::Other),
            _ => {}
        }
        answers.event(&event.kind);
        if let EventKind::ModelCallEnd { stop_reason, .. } = &event.kind {
            is_cut = matches!(stop_reason, StopReason::Error | StopReason::Cancelled);
        }
        turn.iter_mut().for_each(|turn| turn.apply(&event.kind));
    }
    let Some(turn) = turn else { return Some(Ending::NoTurn) };
    let messages = turn.messages();
    let Some(last) = messages.iter().rfind(|message| message.role != Role::User) else {
        return Some(Ending::Nothing);
    };
    let is_text = last.role == Role::Assistant && !last.content.iter().any(is_call);
    let is_last = messages.last().is_some_and(|message| message.role != Role::User);
    Some(match is_cut && is_text && is_last {
        true => Ending::Cut { part: last.text(), is_first: answers.count == 0 },
        false => Ending::Other,
    })
}

/// Counts the complete answers of an agent; a call of its model can also be for a summary, or fail.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pub(super) count: usize,
    is_for_answer: bool,
}

impl Answers {
    /// Applies an event of the agent. Returns why an answer has ended, if one has.
    pub(super) fn event<'a>(&mut self, kind: &'a EventKind) -> Option<&'a StopReason> {
        match kind {
            EventKind::ModelCallStart { purpose, .. } => self.is_for_answer = purpose.is_none(),
            EventKind::ModelCallEnd { stop_reason, .. } if self.is_for_answer => {
                let is_complete = !matches!(stop_reason, StopReason::Error | StopReason::Cancelled);
                self.count += usize::from(is_complete);
                return Some(stop_reason).filter(|_| is_complete);
            }
            _ => {}
        }
        None
    }
}

fn is_call(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::ToolCall(_))
}
