//! Gemini's [responses](https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse),
//! about 300 bytes each: every chunk has the usage so far.

use std::borrow::Cow;

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Part, TOOL, chunk, stamp};

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    candidates: Vec<Candidate<'a>>,
}

#[derive(Deserialize)]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Vec<TextPart<'a>>,
}

#[derive(Deserialize)]
struct TextPart<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

pub(super) fn text(data: &str) -> Result<Option<Cow<'_, str>>> {
    let chunk: Chunk<'_> = serde_json::from_str(data)?;
    let contents = chunk.candidates.into_iter().filter_map(|candidate| candidate.content);
    Ok(contents.flat_map(|content| content.parts).find_map(|part| part.text))
}

pub(super) fn body(task: &str) -> Value {
    json!({ "contents": [{ "role": "user", "parts": [{ "text": task }] }] })
}

pub(super) fn write(part: &Part<'_>, out: &mut Vec<u8>) {
    match part {
        Part::Begin { .. } => {}
        Part::Text { index, sent } => {
            answer(out, &format!(r#"{{"text": "{}"}}"#, stamp(*sent)), "", index + 1);
        }
        Part::Call { index, agent, task } => {
            let call = json!({ "name": TOOL, "args": { "agent_id": agent, "task": task } });
            answer(out, &json!({ "functionCall": call }).to_string(), "", index + 1);
        }
        Part::End { .. } => answer(out, r#"{"text": ""}"#, r#","finishReason": "STOP""#, 100),
    }
}

fn answer(out: &mut Vec<u8>, part: &str, finish: &str, tokens: u32) {
    let total = 100 + tokens;
    let data = format!(
        r#"{{"candidates": [{{"content": {{"parts": [{part}],"role": "model"}}{finish},"index": 0}}],"usageMetadata": {{"promptTokenCount": 100,"candidatesTokenCount": {tokens},"totalTokenCount": {total},"promptTokensDetails": [{{"modality": "TEXT","tokenCount": 100}}]}},"modelVersion": "scripted","responseId": "9HYeaYCpJsWhz7IPq8nXgQs"}}"#
    );
    chunk(out, &format!("data: {data}\r\n\r\n"));
}
