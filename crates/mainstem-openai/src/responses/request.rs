//! Builds the JSON of a request, as in the [reference]. The types here borrow.
//!
//! `stop` and `seed` have no form in this API and are left out.
//!
//! [reference]: https://platform.openai.com/docs/api-reference/responses/create

mod content;
mod input;
mod tool;

use mainstem_http::Fields;
use mainstem_model::{ModelRequest, OnCut, ResponseFormat, ToolChoice};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use self::{
    input::{Item, input},
    tool::Either,
};
use super::{background::include, dialect::Dialect};
use crate::request::fits_strict;

/// Writes the body of a request.
///
/// # Errors
/// If the conversation holds data that the API has no form for.
pub(crate) fn body(model: &str, request: &ModelRequest, dialect: &Dialect) -> Result<Vec<u8>, String> {
    let effort = request.options.effort_without_budget()?.filter(|_| !dialect.no_effort);
    let server_tools = request.options.known_server_tools(&tool::of_vendor())?;
    let body = Body { model, request, input: input(request, dialect)?, effort, server_tools, dialect };
    serde_json::to_vec(&body).map_err(|error| error.to_string())
}

struct Body<'a> {
    model: &'a str,
    request: &'a ModelRequest,
    input: Vec<Item<'a>>,
    effort: Option<&'a str>,
    server_tools: Vec<Value>,
    dialect: &'a Dialect,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ModelRequest { system, tools, tool_choice, options, .. } = self.request;
        let mut body = Fields::new(serializer, &options.extra)?;
        body.field("model", Some(self.model))?;
        if !tools.is_empty() || !self.server_tools.is_empty() {
            let ours = tools.iter().map(|tool| Either::Ours(tool.into()));
            let all = ours.chain(self.server_tools.iter().map(Either::OfVendor));
            body.field("tools", Some(all.collect::<Vec<Either<'_>>>()))?;
            body.field("tool_choice", choice(tool_choice))?;
            body.field("parallel_tool_calls", options.parallel_tool_calls)?;
        }
        body.field("temperature", options.temperature)?;
        body.field("top_p", options.top_p)?;
        body.field("max_output_tokens", options.max_output_tokens)?;
        body.field("reasoning", self.effort.map(|effort| self.reasoning(effort)))?;
        body.field("text", options.response_format.as_ref().map(|form| json!({ "format": format(form) })))?;
        // Later requests do not name what the vendor stores, so they need the encrypted reasoning.
        body.field("store", Some(self.is_background()))?;
        body.field("background", self.is_background().then_some(true))?;
        let include = include(!self.dialect.plain, &self.server_tools);
        body.field("include", Some(include).filter(|include| !include.is_empty()))?;
        body.field("stream", Some(self.dialect.whole.is_none()))?;
        let is_plain = self.dialect.whole.is_none() && self.dialect.own_fields;
        body.field("stream_options", is_plain.then(|| json!({ "include_obfuscation": false })))?;
        body.field(
            "prompt_cache_key",
            self.request.cache_key.as_deref().filter(|_| self.dialect.own_fields),
        )?;
        // What grows comes last.
        body.field("instructions", system.as_deref())?;
        body.field("input", Some(&self.input))?;
        body.end()
    }
}

impl<'a> Body<'a> {
    /// Returns `true` if the vendor goes on with the response after a cut.
    fn is_background(&self) -> bool {
        let Dialect { own_fields, no_background, whole, .. } = self.dialect;
        let can = *own_fields && !no_background && whole.is_none();
        can && self.request.options.on_cut == Some(OnCut::Resume)
    }

    fn reasoning(&self, effort: &'a str) -> Reasoning<'a> {
        Reasoning { effort, summary: (!self.dialect.no_summary).then_some("auto") }
    }
}

#[derive(Serialize)]
struct Reasoning<'a> {
    effort: &'a str,
    /// Without it, the model's thinking is not visible.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

/// Returns the choice; `None` for the default.
fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Tool(name) => Some(json!({ "type": "function", "name": name })),
        _ => None,
    }
}

fn format(format: &ResponseFormat) -> Value {
    match format {
        ResponseFormat::JsonSchema { name, schema, strict } => {
            let strict = *strict && fits_strict(schema);
            json!({ "type": "json_schema", "name": name, "schema": schema, "strict": strict })
        }
        _ => json!({ "type": "json_object" }),
    }
}

#[cfg(test)]
mod tests;
