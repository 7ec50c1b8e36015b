//! Splits a message into deltas.

use mainstem_message::{ContentBlock, DataSource, Message, Opaque};
use mainstem_model::ModelDelta;

/// Returns the deltas that a model would have streamed. Results and addresses of data are left out,
/// because models do not stream them.
pub(crate) fn deltas(message: &Message) -> impl Iterator<Item = ModelDelta> + '_ {
    message.content.iter().enumerate().flat_map(|(slot, block)| block_deltas(slot, block))
}

fn block_deltas(slot: usize, block: &ContentBlock) -> Vec<ModelDelta> {
    let end = |opaque: &Opaque| ModelDelta::BlockEnd { opaque: opaque.clone() };
    match block {
        ContentBlock::Text { text, opaque } => vec![ModelDelta::Text(text.clone()), end(opaque)],
        ContentBlock::Thinking { thinking, opaque } => {
            vec![ModelDelta::Thinking(thinking.clone()), end(opaque)]
        }
        ContentBlock::Data { media_type, source: DataSource::Base64(bytes), opaque } => {
            let start = ModelDelta::DataStart { media_type: media_type.clone() };
            vec![start, ModelDelta::Data(bytes.clone()), end(opaque)]
        }
        ContentBlock::ToolCall(call) => vec![
            ModelDelta::CallStart { slot, id: Some(call.id.clone()), name: call.name.clone() },
            ModelDelta::CallArguments { slot, delta: call.arguments.clone() },
            ModelDelta::CallEnd { slot, opaque: call.opaque.clone() },
        ],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
