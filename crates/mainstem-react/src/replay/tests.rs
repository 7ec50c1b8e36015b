//! Replayed deltas fold back into the same message.

use std::sync::Arc;

use mainstem_event::{EventKind, fold::Transcript};
use mainstem_message::{Role, StopReason, ToolCall, ToolCallId};
use serde_json::json;

use super::*;
use crate::turn::{Scope, Turn};
use crate::{AnswerLimits, answer_limits::Length};

struct Fold(Transcript);

impl Scope for Fold {
    fn emit(&mut self, kind: EventKind) {
        self.0.apply(&kind);
    }

    fn is_taken(&self, _: &ToolCallId) -> bool {
        false
    }

    fn new_call_id(&mut self) -> ToolCallId {
        "new".into()
    }
}

#[track_caller]
fn check(content: Vec<ContentBlock>) {
    let message = Message::new(Role::Assistant, content);
    let (mut fold, mut turn) = (
        Fold(Transcript::new("r".parse().unwrap())),
        Turn::new("1".to_owned(), Length::new(AnswerLimits::default(), 0)),
    );
    fold.emit(EventKind::model_call_start("m", 1));
    deltas(&message).for_each(|delta| turn.push(delta, &mut fold).unwrap());
    turn.finish(&mut fold);
    fold.emit(EventKind::model_call_end(StopReason::Stop, 0));
    let folded = fold.0.last_answer().map(|answer| answer.content.clone());
    assert_eq!(folded, Some(message.content).filter(|content| !content.is_empty()));
}

#[test]
fn a_message_comes_back_as_it_was() {
    let sealed = Opaque::from_iter([("sig".to_owned(), json!("x"))]);
    let text = |text: &str, opaque: &Opaque| ContentBlock::Text { text: text.into(), opaque: opaque.clone() };
    let image = ContentBlock::Data {
        media_type: "image/png".into(),
        source: DataSource::Base64("AA==".into()),
        opaque: sealed.clone(),
    };
    let mut call = ToolCall::new("x", "f", "{}");
    call.opaque.clone_from(&sealed);
    check(vec![]);
    check(vec![text("a", &Opaque::new()), text("b", &Opaque::new())]);
    check(vec![ContentBlock::Thinking { thinking: "hm".into(), opaque: sealed.clone() }, text("a", &sealed)]);
    check(vec![ContentBlock::Thinking { thinking: String::new(), opaque: sealed.clone() }]);
    check(vec![image, text("a", &Opaque::new())]);
    check(vec![
        text("a", &sealed),
        ContentBlock::ToolCall(call),
        ContentBlock::ToolCall(ToolCall::new("y", "g", "")),
    ]);
}

#[test]
fn what_no_model_streams_is_left_out() {
    let url = ContentBlock::Data {
        media_type: "image/png".into(),
        source: DataSource::Url("https://example.com/a.png".into()),
        opaque: Opaque::new(),
    };
    let message = Arc::new(Message::new(Role::Assistant, vec![url]));
    assert_eq!(deltas(&message).count(), 0);
}
