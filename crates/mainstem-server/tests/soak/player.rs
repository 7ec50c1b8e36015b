//! A model whose answer follows from the input alone, however long the conversation is.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use mainstem::{
    message::{Role, StopReason},
    model::{Model, ModelDelta, ModelRequest, ModelStream},
};
use serde_json::json;

use crate::rig::ms;

/// Answers `ok`, unless the input contains one of the words below.
pub(crate) struct Player;

/// Twenty words, one a millisecond.
pub(crate) const LONG: &str = "[long]";
/// One word, and nothing after it.
pub(crate) const HANG: &str = "[hang]";
/// Starts a background task, then answers.
pub(crate) const SPAWN: &str = "[spawn]";
/// Words without end, at the pace of a fast model.
pub(crate) const ENDLESS: &str = "[endless]";

impl Model for Player {
    fn name(&self) -> &'static str {
        "player"
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        // News of background tasks may follow the input.
        let new = request.messages.iter().rev().take_while(|message| message.role != Role::Assistant);
        let input: String = new.filter(|message| message.role == Role::User).map(|new| new.text()).collect();
        match input {
            input if input.contains(LONG) => words(20, ms(1)),
            input if input.contains(ENDLESS) => words(usize::MAX, ms(5)),
            input if input.contains(HANG) => Box::pin(text("Well.").chain(stream::pending())),
            input if input.contains(SPAWN) => spawn(),
            _ => Box::pin(text("ok").chain(stop(StopReason::Stop))),
        }
    }
}

type Deltas = stream::Iter<std::array::IntoIter<Result<ModelDelta, mainstem::model::ModelError>, 1>>;

fn text(text: &str) -> Deltas {
    stream::iter([Ok(ModelDelta::Text(text.to_owned()))])
}

fn stop(reason: StopReason) -> Deltas {
    stream::iter([Ok(ModelDelta::Stop(reason))])
}

fn words(count: usize, pace: Duration) -> ModelStream {
    let words = stream::iter(0..count).then(move |_| async move {
        tokio::time::sleep(pace).await;
        Ok(ModelDelta::Text("word ".to_owned()))
    });
    Box::pin(words.chain(stop(StopReason::Stop)))
}

fn spawn() -> ModelStream {
    let delta = json!({ "agent_id": "kid", "task": "help", "timeout_seconds": 0 }).to_string();
    let call = [
        ModelDelta::CallStart { slot: 0, id: None, name: "agent_spawn".to_owned() },
        ModelDelta::CallArguments { slot: 0, delta },
        ModelDelta::CallEnd { slot: 0, opaque: mainstem::message::Opaque::new() },
    ];
    Box::pin(stream::iter(call.map(Ok)).chain(stop(StopReason::ToolCalls)))
}
