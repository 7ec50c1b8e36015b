//! Which turn is played, and how it ends.

use std::time::Duration;

use futures_util::StreamExt;
use mainstem_message::{Message, StopReason, Usage};
use serde_json::json;

use super::*;
use crate::ModelDelta;

fn request(agent: &str, messages: &[Message]) -> ModelRequest {
    ModelRequest {
        agent: agent.into(),
        messages: messages.iter().cloned().map(Arc::new).collect(),
        ..ModelRequest::default()
    }
}

async fn said(model: &ScriptedModel, agent: &str, messages: &[Message]) -> String {
    let deltas = model.stream(request(agent, messages)).collect::<Vec<_>>().await;
    deltas
        .into_iter()
        .map(|delta| match delta {
            Ok(ModelDelta::Text(text)) => text,
            Ok(ModelDelta::CallStart { name, .. }) => format!("<{name}>"),
            Ok(ModelDelta::Stop(reason)) => format!("|{reason}"),
            Ok(ModelDelta::Usage(usage)) => format!("|{}+{}", usage.input_tokens, usage.output_tokens),
            Ok(_) => String::new(),
            Err(error) => format!("!{error}"),
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_request_alone_chooses_the_turn() {
    let model = ScriptedModel::new()
        .agent_on("twin", "left", [Turn::new().text("L")])
        .agent("twin", [Turn::new().text("R")])
        .agent("main", [Turn::new().call("f", json!({})), Turn::new().say("a b").usage(Usage::new(7, 2))]);
    let (left, right, go) = (Message::user("go left"), Message::user("go right"), Message::user("go"));
    assert_eq!(said(&model, "twin", &[left]).await, "L|2+1|stop");
    assert_eq!(said(&model, "twin", &[right]).await, "R|2+1|stop");
    assert_eq!(said(&model, "main", std::slice::from_ref(&go)).await, "<f>|1+1|tool_calls");
    let second = [go.clone(), Message::assistant(""), Message::user("x")];
    assert_eq!(said(&model, "main", &second).await, "a b|7+2|stop");
    let third = [go, Message::assistant(""), Message::assistant("")];
    assert_eq!(said(&model, "main", &third).await, "!the script of agent \"main\" has 2 turns, not 3");
    assert_eq!(said(&model, "who", &[]).await, "!no script for agent \"who\"");
}

#[tokio::test(start_paused = true)]
async fn waits_and_faults_are_played() {
    let model = ScriptedModel::new().agent(
        "main",
        [Turn::new().wait(Duration::from_secs(3)).text("late").stop(StopReason::Length).rate_limited(1)],
    );
    let before = tokio::time::Instant::now();
    assert_eq!(said(&model, "main", &[]).await, "!too many requests");
    assert_eq!(said(&model, "main", &[]).await, "late|0+1|length");
    assert_eq!(before.elapsed(), Duration::from_secs(3));
}
