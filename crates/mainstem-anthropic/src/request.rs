//! Builds the JSON of a request. The types here borrow, so that nothing is copied.

mod message;
mod part;
mod thinking;

use mainstem_http::Fields;
use mainstem_model::{ModelOptions, ModelRequest, ResponseFormat, ToolChoice, ToolSpec};
use serde::{Serialize, Serializer, ser::SerializeSeq};
use serde_json::{Map, Value, json};

use self::{message::Conversation, thinking::Thinking};
use crate::{Messages, dialect::Dialect, schema};

/// The default limit of tokens, because the API requires one. Every model since Claude 4 can write
/// as many.
const MAX_TOKENS: u32 = 32_000;

/// The smallest `top_p` that is allowed with thinking.
const LEAST_TOP_P: f64 = 0.95;

/// Writes the body of a request.
///
/// # Errors
/// If the conversation holds data that the API has no form for.
pub(crate) fn body(
    model: &str,
    api: &Messages,
    request: &ModelRequest,
    dialect: &Dialect,
) -> Result<Vec<u8>, String> {
    request.options.check_thinking_budget()?;
    let (conversation, thinking) = (message::conversation(request)?, Thinking::of(request, dialect));
    let body = Body { model, api, request, conversation, thinking, dialect };
    serde_json::to_vec(&body).map_err(|error| error.to_string())
}

struct Body<'a> {
    model: &'a str,
    api: &'a Messages,
    request: &'a ModelRequest,
    conversation: Conversation<'a>,
    thinking: Thinking<'a>,
    dialect: &'a Dialect,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ModelRequest { tools, options, .. } = self.request;
        let mut body = Fields::new(serializer, &options.extra)?;
        body.field("model", Some(self.model))?;
        body.field("max_tokens", Some(self.max_tokens()))?;
        body.field("system", self.conversation.system.as_deref())?;
        body.field("messages", Some(&self.conversation.turns))?;
        if !tools.is_empty() {
            body.field("tools", Some(Tools(tools)))?;
            body.field("tool_choice", choice(self.request))?;
        }
        body.field("thinking", self.thinking.config())?;
        body.field("output_config", self.output_config())?;
        body.field(
            "temperature",
            options.temperature.filter(|_| self.may_sample() && !self.thinking.is_on()),
        )?;
        body.field("top_p", options.top_p.filter(|top_p| self.may_narrow(*top_p)))?;
        body.field("stop_sequences", Some(&options.stop).filter(|stop| !stop.is_empty()))?;
        body.field("cache_control", self.api.caching.then(|| json!({ "type": "ephemeral" })))?;
        body.field("stream", Some(true))?;
        body.end()
    }
}

impl Body<'_> {
    /// Returns the limit. Thinking counts towards it, and must leave room for an answer.
    fn max_tokens(&self) -> u32 {
        let ours = || MAX_TOKENS.saturating_add(self.thinking.budget());
        self.request.options.max_output_tokens.unwrap_or_else(ours)
    }

    fn may_sample(&self) -> bool {
        !self.dialect.no_sampling
    }

    fn may_narrow(&self, top_p: f64) -> bool {
        self.may_sample() && (!self.thinking.is_on() || top_p >= LEAST_TOP_P)
    }

    fn output_config(&self) -> Option<Map<String, Value>> {
        let effort = self.thinking.effort().map(|effort| ("effort".to_owned(), effort.into()));
        let config: Map<_, _> = effort.into_iter().chain(format(&self.request.options)).collect();
        (!config.is_empty()).then_some(config)
    }
}

struct Tools<'a>(&'a [ToolSpec]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tools = serializer.serialize_seq(Some(self.0.len()))?;
        for ToolSpec { name, description, parameters, .. } in self.0 {
            tools.serialize_element(&Tool { name, description, input_schema: &schema::input(parameters) })?;
        }
        tools.end()
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
}

/// Returns the choice; `None` for the default.
fn choice(request: &ModelRequest) -> Option<Value> {
    let one_at_a_time = request.options.parallel_tool_calls == Some(false);
    let mut choice = match &request.tool_choice {
        ToolChoice::None => return Some(json!({ "type": "none" })),
        ToolChoice::Required => json!({ "type": "any" }),
        ToolChoice::Tool(name) => json!({ "type": "tool", "name": name }),
        _ if one_at_a_time => json!({ "type": "auto" }),
        _ => return None,
    };
    if one_at_a_time {
        choice["disable_parallel_tool_use"] = true.into();
    }
    Some(choice)
}

/// Returns the format; the API has one: JSON of a schema, always strict.
fn format(options: &ModelOptions) -> Option<(String, Value)> {
    let Some(ResponseFormat::JsonSchema { schema, .. }) = &options.response_format else { return None };
    Some(("format".to_owned(), json!({ "type": "json_schema", "schema": schema::output(schema) })))
}

#[cfg(test)]
mod tests;
