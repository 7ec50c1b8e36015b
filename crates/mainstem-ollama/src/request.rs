//! Builds the JSON of a request. Schemas and options are copied; the other types borrow.

mod message;
mod schema;

use mainstem_http::Fields;
use mainstem_model::{ModelOptions, ModelRequest, ResponseFormat, ToolChoice, ToolSpec};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// The field in which the caller's own values are merged with ours.
const OPTIONS: &str = "options";

/// Writes the body of a request.
///
/// # Errors
/// If the conversation holds data that the API has no form for.
pub(crate) fn body(model: &str, num_ctx: Option<u32>, request: &ModelRequest) -> Result<Vec<u8>, String> {
    request.options.known_server_tools::<()>(&[])?;
    let think = request.options.effort_without_budget()?.map(think);
    let body = Body { model, num_ctx, request, messages: message::messages(request)?, think };
    serde_json::to_vec(&body).map_err(|error| error.to_string())
}

struct Body<'a> {
    model: &'a str,
    num_ctx: Option<u32>,
    request: &'a ModelRequest,
    messages: Vec<message::Turn<'a>>,
    think: Option<Value>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let options = &*self.request.options;
        let (tools, runtime) = (tools(self.request), runtime(self.num_ctx, options));
        let mut body = Fields::new(serializer, &options.extra)?;
        body.field("model", Some(self.model))?;
        body.field("tools", Some(tools).filter(|tools| !tools.is_empty()))?;
        body.field("think", self.think.as_ref())?;
        body.field("format", options.response_format.as_ref().map(format))?;
        body.field("stream", Some(true))?;
        // By default the service drops the oldest messages of a prompt that is too long, and of one
        // that its answer makes too long.
        body.field("truncate", Some(false))?;
        body.field("shift", Some(false))?;
        body.merged(OPTIONS, runtime)?;
        // What grows comes last.
        body.field("messages", Some(&self.messages))?;
        body.end()
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
    parameters: Value,
}

/// Returns the tools. The API has no choice of tools: those that must not be called are left out.
fn tools(request: &ModelRequest) -> Vec<Tool<'_>> {
    let is_offered = |tool: &&ToolSpec| match &request.tool_choice {
        ToolChoice::None => false,
        ToolChoice::Tool(name) => tool.name == *name,
        _ => true,
    };
    request.tools.iter().filter(is_offered).map(tool).collect()
}

fn tool(ToolSpec { name, description, parameters, .. }: &ToolSpec) -> Tool<'_> {
    let parameters = schema::parameters(parameters);
    Tool { kind: "function", function: Function { name, description, parameters } }
}

/// Returns Ollama's options; the caller's own take precedence. `None` if all are defaults.
fn runtime(num_ctx: Option<u32>, options: &ModelOptions) -> Option<Value> {
    let ours = [
        ("num_ctx", num_ctx.map(Value::from)),
        ("temperature", options.temperature.map(Value::from)),
        ("top_p", options.top_p.map(Value::from)),
        ("num_predict", options.max_output_tokens.map(Value::from)),
        ("stop", Some(Value::from(&*options.stop)).filter(|_| !options.stop.is_empty())),
        ("seed", options.seed.map(Value::from)),
    ];
    let ours = ours.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let mut ours: Map<String, Value> = ours.collect();
    match options.extra.get(OPTIONS) {
        Some(Value::Object(own)) => ours.extend(own.clone()),
        Some(own) => return Some(own.clone()),
        None => {}
    }
    (!ours.is_empty()).then_some(Value::Object(ours))
}

/// Returns a boolean, or a level that the model knows.
fn think(effort: &str) -> Value {
    match effort {
        "none" | "off" | "false" => false.into(),
        "on" | "true" => true.into(),
        level => level.into(),
    }
}

fn format(format: &ResponseFormat) -> Value {
    match format {
        ResponseFormat::JsonSchema { schema, .. } => (**schema).clone(),
        _ => "json".into(),
    }
}

#[cfg(test)]
mod tests;
