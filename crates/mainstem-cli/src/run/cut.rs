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
            Ending::Cut(part) => said.insert_str(0, &part),
            Ending::Compacted => continue,
            Ending::Other => break,
        }
        if run.resumes.is_none() {
            break;
        }
    }
    Some(said).filter(|said| !said.is_empty())
}

/// How a run ended.
enum Ending {
    /// In an answer, of which this is the part.
    Cut(String),
    /// It has compacted the conversation.
    Compacted,
    Other,
}

async fn ending(session: &dyn AnySession, run: &RunView) -> Option<Ending> {
    let query = EventQuery { depth: Some(0), ..EventQuery::stored() };
    let mut events = session.events(query.with_run(&run.id));
    let (mut turn, mut is_cut) = (None::<Transcript>, false);
    while let Some(event) = events.try_next().await.ok()? {
        match (&event.kind, event.reply_id()) {
            (EventKind::AgentStart { settings: Some(settings), .. }, _) if settings.compacts => {
                return Some(Ending::Compacted);
            }
            (EventKind::AgentStart { .. }, Some(reply)) => turn = Some(Transcript::new(reply.clone())),
            (EventKind::ModelCallEnd { stop_reason, .. }, _) => {
                is_cut = matches!(stop_reason, StopReason::Error | StopReason::Cancelled);
            }
            (EventKind::AgentResult { .. }, _) => return Some(Ending::Other),
            _ => {}
        }
        turn.iter_mut().for_each(|turn| turn.apply(&event.kind));
    }
    let turn = turn.filter(|_| is_cut);
    let last = turn.as_ref().and_then(|turn| turn.messages().last());
    let last = last.filter(|last| last.role == Role::Assistant && !last.content.iter().any(is_call));
    Some(last.map_or(Ending::Other, |last| Ending::Cut(last.text())))
}

fn is_call(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::ToolCall(_))
}
