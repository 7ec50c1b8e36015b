//! The part of an answer that was cut, before its turn is resumed.

use futures_util::TryStreamExt as _;
use mainstem::{
    api::{AnySession, EventQuery},
    event::{EventKind, fold::Transcript},
    message::{ContentBlock, Role},
};

/// Returns what the root has said last in the session's latest run, if that answer was cut: the
/// model goes on behind it. What can't be read counts as nothing.
pub(super) async fn cut_reply(session: &dyn AnySession) -> Option<String> {
    let latest = session.runs().await.ok()?.pop()?;
    let query = EventQuery { depth: Some(0), ..EventQuery::stored() };
    let mut events = session.events(query.with_run(&latest.id));
    let mut turn = None;
    while let Ok(Some(event)) = events.try_next().await {
        if let (EventKind::AgentStart { .. }, Some(reply)) = (&event.kind, event.reply_id()) {
            turn = Some(Transcript::new(reply.clone()));
        }
        turn.iter_mut().for_each(|turn: &mut Transcript| turn.apply(&event.kind));
    }
    let turn = turn?;
    let last = turn.messages().last().filter(|last| last.role == Role::Assistant)?;
    let has_calls = last.content.iter().any(|block| matches!(block, ContentBlock::ToolCall(_)));
    Some(last.text()).filter(|text| !has_calls && !text.is_empty())
}
