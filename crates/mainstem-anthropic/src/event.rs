//! The vendor's types: an [event] of a stream, or the whole message, whose blocks are the same.
//!
//! Unknown fields are skipped unread, and so are unknown events, blocks and deltas, which the
//! vendor's [versioning] allows at any time.
//!
//! [event]: https://platform.claude.com/docs/en/build-with-claude/streaming
//! [versioning]: https://platform.claude.com/docs/en/api/versioning

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Event<'a> {
    MessageStart {
        message: Message,
    },
    ContentBlockStart {
        #[serde(default)]
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        #[serde(default)]
        index: u64,
        #[serde(borrow)]
        delta: Delta<'a>,
    },
    ContentBlockStop {
        #[serde(default)]
        index: u64,
    },
    MessageDelta {
        delta: Ending,
        usage: Option<Usage>,
    },
    MessageStop,
    Error,
    /// `ping`, and unknown events.
    #[serde(other)]
    Other,
}

/// Empty at the beginning of a stream.
#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    pub(crate) content: Option<Vec<Block>>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", remote = "Self")]
pub(crate) enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    RedactedThinking {
        #[serde(default)]
        data: String,
    },
    ToolUse {
        id: Option<String>,
        #[serde(default)]
        name: String,
        /// Empty in a stream of Anthropic's; other servers send it whole.
        #[serde(default)]
        input: Value,
    },
    /// A call of one of the vendor's own tools, or its result.
    #[serde(skip_deserializing)]
    Server(Map<String, Value>),
    /// Unknown blocks.
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let block = Map::deserialize(deserializer)?;
        match block.get("type").and_then(Value::as_str) {
            Some(kind) if is_of_server(kind) => Ok(Self::Server(block)),
            _ => Self::deserialize(Value::Object(block)).map_err(D::Error::custom),
        }
    }
}

/// Returns `true` for a block of the vendor's [own tools]: a call, such as `server_tool_use`, or a
/// result, such as `web_search_tool_result`.
///
/// [own tools]: https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools
fn is_of_server(kind: &str) -> bool {
    matches!(kind, "server_tool_use" | "mcp_tool_use") || kind.ends_with("_tool_result")
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(crate) enum Delta<'a> {
    #[serde(rename = "text_delta")]
    Text {
        #[serde(borrow)]
        text: Cow<'a, str>,
    },
    #[serde(rename = "thinking_delta")]
    Thinking {
        #[serde(borrow)]
        thinking: Cow<'a, str>,
    },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(rename = "input_json_delta")]
    InputJson {
        #[serde(borrow)]
        partial_json: Cow<'a, str>,
    },
    /// Citations, and unknown deltas.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Ending {
    pub(crate) stop_reason: Option<String>,
}

/// Tokens so far: the vendor's counts are cumulative.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<CacheCreation>,
    cache_read_input_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

/// What was written to the cache, by how long it stays there.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct CacheCreation {
    ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct OutputDetails {
    thinking_tokens: Option<u64>,
}

impl Usage {
    /// Applies a later count, which may leave out unchanged fields.
    pub(crate) fn update(&mut self, later: Self) {
        self.input_tokens = self.input_tokens.max(later.input_tokens);
        self.output_tokens = self.output_tokens.max(later.output_tokens);
        self.cache_creation_input_tokens =
            self.cache_creation_input_tokens.max(later.cache_creation_input_tokens);
        self.cache_creation = later.cache_creation.or(self.cache_creation);
        self.cache_read_input_tokens = self.cache_read_input_tokens.max(later.cache_read_input_tokens);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details);
    }
}

impl From<Usage> for mainstem_message::Usage {
    /// Converts the counts. The vendor's `input_tokens` leave out cached ones; ours include them.
    /// Its `output_tokens` include thinking, as ours do.
    fn from(usage: Usage) -> Self {
        let written = usage.cache_creation_input_tokens.unwrap_or(0);
        let read = usage.cache_read_input_tokens.unwrap_or(0);
        let input = usage.input_tokens.unwrap_or(0).saturating_add(written).saturating_add(read);
        let mut counted = Self::new(input, usage.output_tokens.unwrap_or(0));
        counted.cache_read_tokens = read;
        counted.cache_write_tokens = written;
        let for_an_hour = usage.cache_creation.and_then(|created| created.ephemeral_1h_input_tokens);
        counted.cache_write_1h_tokens = for_an_hour.unwrap_or(0);
        counted.reasoning_tokens =
            usage.output_tokens_details.and_then(|details| details.thinking_tokens).unwrap_or(0);
        counted
    }
}
