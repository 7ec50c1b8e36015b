//! Builds the JSON of a request. The types here borrow, so that nothing is copied.

mod message;
mod part;
mod system;
mod thinking;

use std::borrow::Cow;

use mainstem_http::Fields;
use mainstem_model::{ModelOptions, ModelRequest, ResponseFormat, ToolChoice, ToolSpec};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use self::{message::Conversation, system::System, thinking::Thinking};
use crate::{
    caching::{self, Breakpoint, marked},
    dialect::Dialect,
    schema,
};

/// The default limit of tokens, because the API requires one. Every model since Claude 4 can write
/// as many.
const MAX_TOKENS: u32 = 32_000;

/// The smallest `top_p` that is allowed with thinking.
const LEAST_TOP_P: f64 = 0.95;

/// Writes the body of a request.
///
/// # Errors
/// If the conversation holds data that the API has no form for.
pub(crate) fn body(model: &str, request: &ModelRequest, dialect: &Dialect) -> Result<Vec<u8>, String> {
    request.options.check_thinking_budget()?;
    let breakpoint = breakpoint(request, dialect);
    let conversation = message::conversation(request, breakpoint)?;
    let thinking = Thinking::of(request, dialect);
    thinking.check_room(request.options.max_output_tokens)?;
    let server_tools = request.options.known_server_tools(&SERVER_TOOLS)?;
    let body = Body { model, request, conversation, thinking, breakpoint, server_tools, dialect };
    serde_json::to_vec(&body).map_err(|error| error.to_string())
}

/// Returns the mark of cached places, if the prompt will be sent again. The automatic form in
/// `extra` is one of the four breakpoints that a request may have, so it stands alone.
fn breakpoint(request: &ModelRequest, dialect: &Dialect) -> Option<Breakpoint> {
    let is_automatic = request.options.extra.contains_key("cache_control");
    let may_mark = request.cache_key.is_some() && !is_automatic && !dialect.no_caching;
    caching::breakpoint(request.options.prompt_cache.unwrap_or_default()).filter(|_| may_mark)
}

struct Body<'a> {
    model: &'a str,
    request: &'a ModelRequest,
    conversation: Conversation<'a>,
    thinking: Thinking<'a>,
    breakpoint: Option<Breakpoint>,
    server_tools: Vec<ServerTool>,
    dialect: &'a Dialect,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ModelRequest { tools, options, .. } = self.request;
        let mut body = Fields::new(serializer, &options.extra)?;
        body.field("model", Some(self.model))?;
        body.field("max_tokens", Some(self.max_tokens()))?;
        if !tools.is_empty() || !self.server_tools.is_empty() {
            let all = Tools { specs: tools, of_vendor: &self.server_tools, breakpoint: self.breakpoint };
            body.field("tools", Some(all))?;
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
        body.field("stream", Some(true))?;
        // What grows comes last: a prompt is cached as tools, instructions, conversation.
        body.field("system", self.system())?;
        body.field("messages", Some(&self.conversation.turns))?;
        body.end()
    }
}

impl Body<'_> {
    /// Returns the limit. Thinking counts towards it, and must leave room for an answer.
    fn max_tokens(&self) -> u32 {
        let ours = || MAX_TOKENS.saturating_add(self.thinking.budget());
        self.request.options.max_output_tokens.unwrap_or_else(ours)
    }

    fn system(&self) -> Option<System<'_>> {
        let text = self.conversation.system.as_deref()?;
        Some(System { text, breakpoint: self.breakpoint })
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

struct Tools<'a> {
    specs: &'a [ToolSpec],
    of_vendor: &'a [ServerTool],
    breakpoint: Option<Breakpoint>,
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ours = self.specs.iter().map(|ToolSpec { name, description, parameters, .. }| {
            Either::Ours(Tool { name, description, input_schema: schema::input(parameters) })
        });
        let all: Vec<_> = ours.chain(self.of_vendor.iter().map(Either::OfVendor)).collect();
        marked(serializer, all.into_iter(), self.breakpoint)
    }
}

/// The vendor's [own tools], by our names.
///
/// [own tools]: https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools
const SERVER_TOOLS: [(&str, ServerTool); 2] = [
    ("web_search", ServerTool { kind: "web_search_20250305", name: "web_search" }),
    ("code_execution", ServerTool { kind: "code_execution_20250825", name: "code_execution" }),
];

#[derive(Clone, Serialize)]
struct ServerTool {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Either<'a> {
    Ours(Tool<'a>),
    OfVendor(&'a ServerTool),
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Cow<'a, Value>,
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
