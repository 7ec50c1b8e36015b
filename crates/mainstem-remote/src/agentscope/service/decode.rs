//! What one event or block says. Pure.

use mainstem_event::EventKind;
use mainstem_message::{BlockId, ContentBlock, DataSource, Opaque, ToolCall, ToolCallId, Usage};
use serde_json::{Value, json};

use super::{
    super::decode::{Statement, state},
    wire::{Event, Tokens},
};

/// The beginning of the name of a `CUSTOM` event of a kind that this program does not have.
const FOREIGN: &str = "agentscope.";

/// Returns what an event says, except for the beginning and the end of a reply; `text` is all of
/// it.
pub(super) fn statement(event: &Event, text: &str) -> Statement {
    let id = || ToolCallId::new(event.tool_call_id.clone().unwrap_or_default());
    let name = || event.tool_call_name.clone().unwrap_or_default();
    let delta = || event.delta.clone().unwrap_or_default();
    match &*event.kind {
        "MODEL_CALL_START" => Statement::ModelStart(event.model_name.clone()),
        "MODEL_CALL_END" => Statement::ModelEnd(Some(usage(Tokens {
            input_tokens: event.input_tokens,
            output_tokens: event.output_tokens,
            cache_input_tokens: event.cache_input_tokens,
            cache_creation_input_tokens: event.cache_creation_input_tokens,
        }))),
        "TEXT_BLOCK_DELTA" => Statement::Text(delta()),
        "THINKING_BLOCK_DELTA" => Statement::Thinking(delta()),
        "DATA_BLOCK_START" => Statement::DataStart(event.media_type.clone().unwrap_or_default()),
        "DATA_BLOCK_DELTA" if event.data.is_some() => Statement::Data(event.data.clone().unwrap_or_default()),
        // A block of ours has its data, and no address.
        "DATA_BLOCK_DELTA" => Statement::Text(event.url.clone().unwrap_or_default()),
        "TEXT_BLOCK_END" | "THINKING_BLOCK_END" | "DATA_BLOCK_END" => Statement::EndBlock,
        "TOOL_CALL_START" => Statement::Call { id: id(), name: name() },
        "TOOL_CALL_DELTA" => Statement::Arguments { id: id(), delta: delta() },
        "TOOL_CALL_END" => Statement::EndCall(id()),
        "TOOL_RESULT_START" => Statement::BeginResult { id: id(), name: name(), input: None },
        "TOOL_RESULT_TEXT_DELTA" => Statement::Result { id: id(), delta: delta() },
        "TOOL_RESULT_DATA_DELTA" => match result_data(event) {
            Some(data) => Statement::ResultData { id: id(), data },
            None => Statement::Nothing,
        },
        "TOOL_RESULT_END" => {
            Statement::EndResult { id: id(), name: name(), state: state(event.state.as_deref()) }
        }
        "HINT_BLOCK" => hint(&event.hint, event.source.as_deref()),
        "REQUIRE_USER_CONFIRM" => Statement::Ask(event.tool_calls.iter().filter_map(tool_call).collect()),
        "USER_CONFIRM_RESULT" => {
            let answer = |one: &Value| Some((tool_call(&one["tool_call"])?.id, one["confirmed"] == true));
            Statement::Answered(event.confirm_results.iter().filter_map(answer).collect())
        }
        "CUSTOM" => {
            let name = event.name.clone().unwrap_or_default();
            Statement::Other(Box::new(EventKind::Custom { name, value: event.value.clone() }))
        }
        "TEXT_BLOCK_START" | "THINKING_BLOCK_START" | "EXCEED_MAX_ITERS" | "USER_INTERRUPT" => {
            Statement::Nothing
        }
        kind => {
            let (name, value) = (format!("{FOREIGN}{kind}"), serde_json::from_str(text).unwrap_or_default());
            Statement::Other(Box::new(EventKind::Custom { name, value }))
        }
    }
}

/// Returns a call that the service asks about; `None` if it is not one.
pub(super) fn tool_call(block: &Value) -> Option<ToolCall> {
    let text = |name: &str| block[name].as_str();
    let id = text("id").filter(|id| !id.is_empty())?;
    Some(ToolCall::new(id, text("name").unwrap_or_default(), text("input").unwrap_or("{}")))
}

/// Returns a hint, which is a text or a list of blocks. Its source names who gives it.
pub(super) fn hint(hint: &Value, source: Option<&str>) -> Statement {
    let label = |source: &str| {
        let json: Option<Value> = serde_json::from_str(source).ok();
        json.and_then(|json| json["label"].as_str().map(str::to_owned)).unwrap_or_else(|| source.to_owned())
    };
    let kind = EventKind::HintBlock {
        block_id: BlockId::from_lossy("hint"),
        hint_source: source.map_or_else(|| "agentscope".to_owned(), label),
        hint: texts(hint),
    };
    Statement::Other(Box::new(kind))
}

/// Returns the text of a value that is a text or a list of blocks.
pub(super) fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Returns the data of a block.
pub(super) fn data(source: &Value) -> Option<ContentBlock> {
    let media_type = source["media_type"].as_str().unwrap_or("application/octet-stream").to_owned();
    let source = match (source["data"].as_str(), source["url"].as_str()) {
        (Some(data), _) => DataSource::Base64(data.to_owned()),
        (None, Some(url)) => DataSource::Url(url.to_owned()),
        (None, None) => return None,
    };
    Some(ContentBlock::Data { media_type, source, opaque: Opaque::new() })
}

fn result_data(event: &Event) -> Option<ContentBlock> {
    let Event { media_type, data: bytes, url, .. } = event;
    data(&json!({ "media_type": media_type, "data": bytes, "url": url }))
}

pub(super) fn usage(tokens: Tokens) -> Usage {
    let mut usage = Usage::new(tokens.input_tokens, tokens.output_tokens);
    usage.cache_read_tokens = tokens.cache_input_tokens;
    usage.cache_write_tokens = tokens.cache_creation_input_tokens;
    usage
}
