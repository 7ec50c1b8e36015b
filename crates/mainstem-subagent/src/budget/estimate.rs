//! An estimate of what a model call uses, before it is made.

use mainstem_message::{ContentBlock, DataSource, Message, ToolSpec, Usage};
use mainstem_model::ModelRequest;
use mainstem_policy::estimated_usage;
use serde_json::Value;

/// The output limit of a request without one: what most models have.
const USUAL_OUTPUT: u64 = 4_096;

/// Returns an estimate: the bytes of the request ÷ 4, and all the output that it allows.
pub(super) fn of(request: &ModelRequest) -> Usage {
    let system = request.system.as_ref().map_or(0, |text| text.len());
    let messages: usize = request.messages.iter().map(|message| of_message(message)).sum();
    let tools: usize = request.tools.iter().map(of_tool).sum();
    let bytes = system.saturating_add(messages).saturating_add(tools);
    estimated_usage(bytes as u64, request.options.max_output_tokens.map_or(USUAL_OUTPUT, u64::from))
}

fn of_message(message: &Message) -> usize {
    message.content.iter().map(of_block).sum()
}

fn of_block(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text { text, .. } => text.len(),
        ContentBlock::Thinking { thinking, .. } => thinking.len(),
        ContentBlock::Data { source: DataSource::Base64(data) | DataSource::Url(data), .. } => data.len(),
        ContentBlock::ToolCall(call) => call.name.len() + call.arguments.len(),
        ContentBlock::ToolResult(result) => {
            result.name.len() + result.content.iter().map(of_block).sum::<usize>()
        }
        _ => 0,
    }
}

fn of_tool(tool: &ToolSpec) -> usize {
    tool.name.len() + tool.description.len() + of_json(&tool.parameters)
}

/// About as many bytes as it has when written.
fn of_json(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| of_json(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(key, value)| key.len() + 4 + of_json(value)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests;
