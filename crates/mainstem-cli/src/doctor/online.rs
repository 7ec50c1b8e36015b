//! Two short requests: whether the model streams, and whether it calls a tool.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use mainstem::{
    message::Message,
    model::{Model, ModelDelta, ModelError, ModelRequest, ToolSpec},
};
use serde_json::json;

use super::Finding;
use crate::print::counted;

/// What one answer consists of.
#[derive(Default)]
struct Answer {
    first: Option<Duration>,
    texts: usize,
    calls: Vec<String>,
    not_streaming: Option<String>,
}

pub(super) async fn ask(model: &Arc<dyn Model>) -> Vec<Finding> {
    let counts = match request(model, "Count from one to twenty, in words, and say nothing else.", None).await
    {
        Ok(answer) => answer,
        Err(error) => return vec![failed("asked", &error)],
    };
    let mut findings = vec![streams(&counts)];
    let tool = ToolSpec::new("ping", "Answers pong.", json!({ "type": "object", "properties": {} }));
    let asked = request(model, "Call the tool `ping` now.", Some(tool)).await;
    findings.push(match asked {
        Ok(answer) if answer.calls.iter().any(|name| name == "ping") => {
            Finding::well("online: it calls tools")
        }
        Ok(_) => Finding::wrong(
            "online: it did not call the tool that it was asked to call",
            "choose a model that calls tools; without them it spawns no children",
        ),
        Err(error) => failed("offered a tool", &error),
    });
    findings
}

fn streams(answer: &Answer) -> Finding {
    let first = answer.first.unwrap_or_default();
    match &answer.not_streaming {
        Some(reason) => Finding::wrong(
            format!("online: it answers in one piece: {reason}"),
            "nothing is lost, but replies are not live; choose a model or a server that streams",
        ),
        None if answer.texts < 2 => Finding::wrong(
            format!("online: its answer came as {} after {first:.1?}", counted(answer.texts, "piece")),
            "look for a proxy that buffers, or a server that does not stream",
        ),
        None => {
            Finding::well(format!("online: it streams: {} pieces, the first after {first:.1?}", answer.texts))
        }
    }
}

fn failed(what: &str, error: &ModelError) -> Finding {
    Finding::wrong(format!("online: {what}, it failed: {error}"), "correct that, then try again")
}

async fn request(model: &Arc<dyn Model>, prompt: &str, tool: Option<ToolSpec>) -> Result<Answer, ModelError> {
    let request = ModelRequest {
        agent: "doctor".into(),
        messages: vec![Arc::new(Message::user(prompt))],
        tools: tool.into_iter().collect(),
        ..ModelRequest::default()
    };
    let (began, mut answer) = (Instant::now(), Answer::default());
    let mut deltas = model.stream(request);
    while let Some(delta) = deltas.next().await {
        let delta = delta?;
        if delta.is_content() {
            answer.first.get_or_insert_with(|| began.elapsed());
        }
        match delta {
            ModelDelta::Text(_) | ModelDelta::Thinking(_) => answer.texts += 1,
            ModelDelta::CallStart { name, .. } => answer.calls.push(name),
            ModelDelta::NotStreaming { reason } => answer.not_streaming = Some(reason),
            _ => {}
        }
    }
    Ok(answer)
}
