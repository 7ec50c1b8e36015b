//! Two short requests: does the model stream, does it call a tool.

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

/// What is heard of one answer.
#[derive(Default)]
struct Heard {
    first: Option<Duration>,
    texts: u32,
    calls: Vec<String>,
    not_streaming: Option<String>,
}

pub(super) async fn ask(model: &Arc<dyn Model>) -> Vec<Finding> {
    let counts = match hear(model, "Count from one to twenty, in words, and say nothing else.", None).await {
        Ok(heard) => heard,
        Err(error) => return vec![failed("asked", &error)],
    };
    let mut findings = vec![streams(&counts)];
    let tool = ToolSpec::new("ping", "Answers pong.", json!({ "type": "object", "properties": {} }));
    let asked = hear(model, "Call the tool `ping` now.", Some(tool)).await;
    findings.push(match asked {
        Ok(heard) if heard.calls.iter().any(|name| name == "ping") => Finding::well("online: it calls tools"),
        Ok(_) => Finding::wrong(
            "online: asked to call a tool, it called none",
            "choose a model that calls tools; without them it spawns no children",
        ),
        Err(error) => failed("offered a tool", &error),
    });
    findings
}

fn streams(heard: &Heard) -> Finding {
    let first = heard.first.unwrap_or_default();
    match &heard.not_streaming {
        Some(reason) => Finding::wrong(
            format!("online: it answers in one piece: {reason}"),
            "nothing is lost, but replies are not live; choose a model or a server that streams",
        ),
        None if heard.texts < 2 => Finding::wrong(
            format!("online: its answer came as {} pieces after {first:.1?}", heard.texts),
            "look for a proxy that buffers, or a server that does not stream",
        ),
        None => {
            Finding::well(format!("online: it streams: {} pieces, the first after {first:.1?}", heard.texts))
        }
    }
}

fn failed(what: &str, error: &ModelError) -> Finding {
    Finding::wrong(format!("online: {what}, it failed: {error}"), "mend what it says, then try again")
}

async fn hear(model: &Arc<dyn Model>, prompt: &str, tool: Option<ToolSpec>) -> Result<Heard, ModelError> {
    let request = ModelRequest {
        agent: "doctor".into(),
        messages: vec![Arc::new(Message::user(prompt))],
        tools: tool.into_iter().collect(),
        ..ModelRequest::default()
    };
    let (began, mut heard) = (Instant::now(), Heard::default());
    let mut deltas = model.stream(request);
    while let Some(delta) = deltas.next().await {
        let delta = delta?;
        if delta.is_content() {
            heard.first.get_or_insert_with(|| began.elapsed());
        }
        match delta {
            ModelDelta::Text(_) | ModelDelta::Thinking(_) => heard.texts += 1,
            ModelDelta::CallStart { name, .. } => heard.calls.push(name),
            ModelDelta::NotStreaming { reason } => heard.not_streaming = Some(reason),
            _ => {}
        }
    }
    Ok(heard)
}
