//! What a LangGraph server sends, as far as it is read.

use mainstem_message::Usage;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::server::KEY;

/// A message, or a part of one that is being streamed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    /// A text, or a list of texts and blocks.
    pub(super) content: Value,
    #[serde(deserialize_with = "or_default")]
    pub(super) tool_calls: Vec<Call>,
    #[serde(deserialize_with = "or_default")]
    pub(super) tool_call_chunks: Vec<CallChunk>,
    pub(super) tool_call_id: Option<String>,
    pub(super) status: Option<String>,
    pub(super) artifact: Value,
    pub(super) usage_metadata: Option<UsageMetadata>,
    #[serde(deserialize_with = "or_default")]
    pub(super) additional_kwargs: Map<String, Value>,
    /// `last` in the last part of a message.
    pub(super) chunk_position: Option<String>,
}

impl Message {
    /// Renames its calls, and the call whose result it is.
    pub(super) fn rename_calls(&mut self, rename: impl Fn(&mut String)) {
        let called = self.tool_calls.iter_mut().filter_map(|call| call.id.as_mut());
        let chunks = self.tool_call_chunks.iter_mut().filter_map(|chunk| chunk.id.as_mut());
        called.chain(chunks).chain(&mut self.tool_call_id).for_each(rename);
    }

    pub(super) fn is_part(&self) -> bool {
        self.kind.ends_with("MessageChunk")
    }

    pub(super) fn is_answer(&self) -> bool {
        matches!(&*self.kind, "ai" | "AIMessageChunk")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Call {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) args: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallChunk {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) args: Option<String>,
    /// Which call of the message it continues: a number or a text.
    pub(super) index: Value,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageMetadata {
    input_tokens: u64,
    output_tokens: u64,
    #[serde(deserialize_with = "or_default")]
    input_token_details: InputDetails,
    #[serde(deserialize_with = "or_default")]
    output_token_details: OutputDetails,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    #[serde(deserialize_with = "or_default")]
    cache_read: u64,
    #[serde(deserialize_with = "or_default")]
    cache_creation: u64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    #[serde(deserialize_with = "or_default")]
    reasoning: u64,
}

impl From<UsageMetadata> for Usage {
    fn from(usage: UsageMetadata) -> Self {
        let UsageMetadata { input_tokens, output_tokens, input_token_details: input, .. } = usage;
        let mut all = Self::new(input_tokens, output_tokens);
        all.cache_read_tokens = input.cache_read;
        all.cache_write_tokens = input.cache_creation;
        all.reasoning_tokens = usage.output_token_details.reasoning;
        all
    }
}

/// What a run says of the node that a message is from.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    /// The name of an agent that `create_agent` has made.
    pub(super) lc_agent_name: Option<String>,
    pub(super) ls_model_name: Option<String>,
}

/// The beginning of a node's task, which has an input, or its end.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) input: Option<Value>,
    pub(super) error: Value,
    #[serde(deserialize_with = "or_default")]
    pub(super) interrupts: Vec<Interrupt>,
}

/// A question to a person.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(super) struct Interrupt {
    #[serde(deserialize_with = "or_default")]
    pub(super) id: String,
    pub(super) value: Value,
}

/// The state of a thread.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct State {
    pub(super) values: Value,
    #[serde(deserialize_with = "or_default")]
    pub(super) next: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) tasks: Vec<Task>,
}

impl State {
    /// Returns the messages of the state that this side can read.
    pub(super) fn messages(&self) -> Vec<Message> {
        let messages = self.values.get("messages").and_then(Value::as_array);
        messages.into_iter().flatten().filter_map(|one| read(one).ok()).collect()
    }
}

/// The status of a run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Run {
    pub(super) run_id: String,
    pub(super) status: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) metadata: Map<String, Value>,
}

impl Run {
    /// Returns the key of the request that has begun it.
    pub(super) fn key(&self) -> Option<&str> {
        self.metadata.get(KEY)?.as_str()
    }

    pub(super) fn is_over(&self) -> bool {
        !matches!(&*self.status, "pending" | "running")
    }
}

/// Why a run failed.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct Failed {
    #[serde(deserialize_with = "or_default")]
    pub(super) error: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) message: String,
}

/// Reads a value from JSON that is parsed already.
pub(super) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, serde_json::Error> {
    T::deserialize(value)
}

/// Reads `null` as the default.
fn or_default<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(value: D) -> Result<T, D::Error> {
    Option::deserialize(value).map(Option::unwrap_or_default)
}
