//! Builds the JSON of a request. The types here borrow, so that nothing is copied.

mod address;
mod message;
mod part;
mod strict;

use mainstem_http::Fields;
use mainstem_model::{ModelOptions, ModelRequest, ResponseFormat, ToolChoice, ToolSpec};
use serde::{Serialize, Serializer, ser::SerializeSeq};
use serde_json::{Value, json};

pub(crate) use self::{address::DataUrl, message::text, strict::fits_strict};

use crate::dialect::Dialect;

/// Writes the body of a request.
///
/// # Errors
/// If the conversation holds data that the API has no form for.
pub(crate) fn body(model: &str, request: &ModelRequest, dialect: &Dialect) -> Result<Vec<u8>, String> {
    request.options.known_server_tools::<()>(&[])?;
    let messages = message::messages(request, dialect)?;
    let thinking = Thinking::of(&request.options, dialect)?;
    let body = Body { model, request, messages, thinking, dialect };
    serde_json::to_vec(&body).map_err(|error| error.to_string())
}

struct Body<'a> {
    model: &'a str,
    request: &'a ModelRequest,
    messages: Vec<message::Turn<'a>>,
    thinking: Thinking<'a>,
    dialect: &'a Dialect,
}

/// How hard the model thinks.
struct Thinking<'a> {
    effort: Option<&'a str>,
    budget: Option<u32>,
}

impl<'a> Thinking<'a> {
    fn of(options: &'a ModelOptions, dialect: &Dialect) -> Result<Self, String> {
        let budget = options.thinking_budget.filter(|_| dialect.thinking_budget);
        let effort = if budget.is_some() { None } else { options.effort_without_budget()? };
        Ok(Self { effort: effort.filter(|_| !dialect.no_effort), budget })
    }
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ModelRequest { tools, tool_choice, options, .. } = self.request;
        let mut body = Fields::new(serializer, &options.extra)?;
        body.field("model", Some(self.model))?;
        if !tools.is_empty() {
            body.field("tools", Some(Tools(tools)))?;
            body.field("tool_choice", choice(tool_choice))?;
            body.field("parallel_tool_calls", options.parallel_tool_calls)?;
        }
        body.field("temperature", options.temperature)?;
        body.field("top_p", options.top_p)?;
        let limit = if self.dialect.completion_tokens { "max_completion_tokens" } else { "max_tokens" };
        body.field(limit, options.max_output_tokens)?;
        body.field("stop", Some(&options.stop).filter(|stop| !stop.is_empty()))?;
        body.field(if self.dialect.random_seed { "random_seed" } else { "seed" }, options.seed)?;
        body.field("reasoning_effort", self.thinking.effort)?;
        body.field("reasoning", self.thinking.budget.map(|budget| json!({ "max_tokens": budget })))?;
        body.field("response_format", options.response_format.as_ref().map(format))?;
        body.field("stream", Some(self.dialect.whole.is_none()))?;
        body.field("stream_options", self.stream_options())?;
        body.field("prompt_cache_key", self.cache_key())?;
        // What grows comes last.
        body.field("messages", Some(&self.messages))?;
        body.end()
    }
}

impl Body<'_> {
    fn stream_options(&self) -> Option<StreamOptions> {
        let dialect = self.dialect;
        let may_set = dialect.whole.is_none() && !dialect.no_usage;
        let include_obfuscation = dialect.own_fields.then_some(false);
        may_set.then_some(StreamOptions { include_usage: true, include_obfuscation })
    }

    fn cache_key(&self) -> Option<&str> {
        self.request.cache_key.as_deref().filter(|_| self.dialect.own_fields)
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
    /// Whether each chunk has random text, by default, which hides the length of the answer from
    /// readers of encrypted traffic. With it, chunks are longer and have no common part.
    #[serde(skip_serializing_if = "Option::is_none")]
    include_obfuscation: Option<bool>,
}

struct Tools<'a>(&'a [ToolSpec]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tools = serializer.serialize_seq(Some(self.0.len()))?;
        for ToolSpec { name, description, parameters, .. } in self.0 {
            tools.serialize_element(&Tool {
                kind: "function",
                function: Function { name, description, parameters },
            })?;
        }
        tools.end()
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

/// Returns the choice; `None` for the default.
fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Tool(name) => Some(json!({ "type": "function", "function": { "name": name } })),
        _ => None,
    }
}

fn format(format: &ResponseFormat) -> Value {
    match format {
        ResponseFormat::JsonSchema { name, schema, strict } => {
            let strict = *strict && fits_strict(schema);
            json!({ "type": "json_schema", "json_schema": { "name": name, "schema": schema, "strict": strict } })
        }
        _ => json!({ "type": "json_object" }),
    }
}

#[cfg(test)]
mod tests;
