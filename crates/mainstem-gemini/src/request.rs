//! Builds the JSON of a request: a [GenerateContentRequest]. The types here borrow, so that little
//! is copied.
//!
//! [GenerateContentRequest]: https://ai.google.dev/api/generate-content#request-body

mod contents;
mod part;
mod schema;

use mainstem_model::{ModelOptions, ModelRequest, ResponseFormat, ToolChoice, ToolSpec};
use serde::Serialize;
use serde_json::{Map, Value};

use self::{contents::Content, part::Part};
use crate::generation::Generation;

/// Writes the body of a request.
///
/// # Errors
/// If the conversation holds something that the API has no form for; the error has its place.
pub(crate) fn body(model: &str, request: &ModelRequest) -> Result<Vec<u8>, String> {
    request.options.check_thinking_budget()?;
    let body = Body::new(request, Generation::of(model))?;
    serialize(&body, &request.options.extra).map_err(|error| error.to_string())
}

/// Serializes a request. The caller's own fields take precedence, and are merged into ours, because
/// most of ours are within `generationConfig`.
fn serialize(body: &Body<'_>, extra: &Map<String, Value>) -> Result<Vec<u8>, serde_json::Error> {
    if extra.is_empty() {
        return serde_json::to_vec(body);
    }
    let mut body = serde_json::to_value(body)?;
    if let Value::Object(body) = &mut body {
        merge(body, extra);
    }
    serde_json::to_vec(&body)
}

fn merge(ours: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (name, value) in extra {
        match (ours.get_mut(name), value) {
            (Some(Value::Object(ours)), Value::Object(extra)) => merge(ours, extra),
            _ => {
                ours.insert(name.clone(), value.clone());
            }
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<Tools<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "GenerationConfig::is_empty")]
    generation_config: GenerationConfig<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    /// What grows comes last: the vendor caches the beginnings of prompts.
    contents: Vec<Content<'a>>,
}

impl<'a> Body<'a> {
    fn new(request: &'a ModelRequest, generation: Generation) -> Result<Self, String> {
        let conversation = contents::conversation(request, generation)?;
        let server_tools = request.options.known_server_tools(&SERVER_TOOLS)?;
        let ours = Tools::Functions(request.tools.iter().map(declaration).collect());
        let ours = Some(ours).filter(|_| !request.tools.is_empty());
        let tool_config = ToolConfig {
            function_calling_config: ours.as_ref().and_then(|_| choice(&request.tool_choice)),
            // Without it, the service refuses both kinds of tools in one request.
            include_server_side_tool_invocations: ours.is_some() && !server_tools.is_empty(),
        };
        let tools: Vec<_> = ours.into_iter().chain(server_tools).collect();
        Ok(Self {
            system_instruction: Some(Instruction { parts: conversation.system })
                .filter(|instruction| !instruction.parts.is_empty()),
            contents: conversation.contents,
            tools: Some(tools).filter(|tools| !tools.is_empty()),
            tool_config: Some(tool_config).filter(|config| *config != ToolConfig::default()),
            generation_config: GenerationConfig::new(&request.options, generation),
        })
    }
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: Vec<Part<'a>>,
}

/// The service's [own tools](https://ai.google.dev/gemini-api/docs/tools), by our names.
const SERVER_TOOLS: [(&str, Tools<'static>); 2] =
    [("web_search", Tools::GoogleSearch {}), ("code_execution", Tools::CodeExecution {})];

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
enum Tools<'a> {
    #[serde(rename = "functionDeclarations")]
    Functions(Vec<Declaration<'a>>),
    GoogleSearch {},
    CodeExecution {},
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters_json_schema: Option<Value>,
}

fn declaration(ToolSpec { name, description, parameters, .. }: &ToolSpec) -> Declaration<'_> {
    Declaration { name, description, parameters_json_schema: schema::parameters(parameters) }
}

#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    function_calling_config: Option<CallingConfig<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    include_server_side_tool_invocations: bool,
}

#[derive(PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct CallingConfig<'a> {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_function_names: Option<[&'a str; 1]>,
}

/// Returns the choice; `None` for the default, `AUTO`.
fn choice(choice: &ToolChoice) -> Option<CallingConfig<'_>> {
    let (mode, allowed) = match choice {
        ToolChoice::None => ("NONE", None),
        ToolChoice::Required => ("ANY", None),
        ToolChoice::Tool(name) => ("ANY", Some([name.as_str()])),
        _ => return None,
    };
    Some(CallingConfig { mode, allowed_function_names: allowed })
}

#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

impl<'a> GenerationConfig<'a> {
    fn new(options: &'a ModelOptions, generation: Generation) -> Self {
        let format = options.response_format.as_ref();
        Self {
            temperature: options.temperature,
            top_p: options.top_p,
            max_output_tokens: options.max_output_tokens,
            stop_sequences: &options.stop,
            // The API has an `int32`.
            seed: options.seed.map(|seed| seed & 0x7fff_ffff),
            response_mime_type: format.map(|_| "application/json"),
            response_json_schema: format.and_then(|format| match format {
                ResponseFormat::JsonSchema { schema, .. } => Some(schema::translate(schema)),
                _ => None,
            }),
            thinking_config: thinking(options, generation),
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    include_thoughts: bool,
}

/// Returns the [budget](https://ai.google.dev/gemini-api/docs/thinking#set-budget), of which 0 is
/// off, or the level; the API refuses both. Gemini 3 takes a budget only for compatibility.
fn thinking(options: &ModelOptions, generation: Generation) -> Option<ThinkingConfig> {
    let effort = options.effort.as_deref().map(str::trim);
    let of_effort = || effort.and_then(budget).filter(|_| generation == Generation::Two);
    let is_taken = effort.is_none() || generation == Generation::Two;
    let own = options.thinking_budget.filter(|_| is_taken);
    match own.or_else(of_effort) {
        Some(budget) => Some(ThinkingConfig {
            thinking_budget: Some(budget),
            include_thoughts: budget != 0,
            ..ThinkingConfig::default()
        }),
        None => effort.map(|level| ThinkingConfig {
            thinking_level: Some(level.to_ascii_uppercase()),
            include_thoughts: true,
            ..ThinkingConfig::default()
        }),
    }
}

/// Returns the budget that Google assigns to OpenAI's words, for models that think by a budget.
fn budget(effort: &str) -> Option<u32> {
    Some(match effort {
        "none" => 0,
        "minimal" | "low" => 1024,
        "medium" => 8192,
        // `high` is the highest level of the API.
        "high" | "xhigh" | "max" => 24576,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
