//! Answers of a schema: enforced by the vendor, or given as the arguments of a tool; checked in any
//! case.

use std::{borrow::Cow, sync::Arc};

use async_trait::async_trait;
use mainstem_event::EventKind;
use mainstem_message::{BlockId, Message, StopReason, ToolCall, ToolState};
use mainstem_model::{ModelOptions, ModelRequest, ResponseFormat, ToolChoice, ToolSpec};
use mainstem_tool::blocking;
use serde_json::Value;

use crate::{AgentError, Answer, Middleware, NextModel, OutputSchema, RunContext};

/// The name of the schema, and of its tool.
const FINAL_ANSWER: &str = "final_answer";

/// How many characters of an answer an error shows.
const SHOWN: usize = 2000;

/// Gives an agent's answer a schema: the reply is JSON of this schema.
///
/// If the model's vendor enforces schemas, the request has the schema. Otherwise the agent gets a
/// tool `final_answer`, whose arguments are its answer; other calls of that turn are not run. An
/// answer that does not fit is requested once more, with its problems; then the run ends with
/// [`AgentError::Output`]. JSON within prose or a code fence is extracted.
///
/// Place it inside of middleware that inspects answers, so that each model call passes that
/// middleware.
///
/// ```
/// use mainstem_react::{OutputSchema, StructuredOutput, prelude::*};
///
/// let model = ScriptedModel::new();
/// let output = StructuredOutput::new(OutputSchema::of::<Vec<String>>()?);
/// let agent = Agent::builder("main", model).with_middleware(output).build();
/// # let _ = agent;
/// # Ok::<(), mainstem_react::OutputSchemaError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StructuredOutput(Option<OutputSchema>);

impl StructuredOutput {
    /// Creates a middleware for an agent whose answers all have this schema.
    pub fn new(schema: OutputSchema) -> Self {
        Self(Some(schema))
    }

    /// Creates a middleware for the root's answer, whose schema the run sets with
    /// [`RunContextBuilder::with_output`](crate::RunContextBuilder::with_output); without one, the
    /// agent's own applies.
    pub fn of_run(own: Option<OutputSchema>) -> Self {
        Self(own)
    }

    fn schema(&self, cx: &RunContext) -> Option<OutputSchema> {
        let of_run = cx.output().filter(|_| cx.depth() == 0);
        of_run.or(self.0.as_ref()).cloned()
    }
}

#[async_trait]
impl Middleware for StructuredOutput {
    async fn on_model_call(
        &self,
        cx: &RunContext,
        request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<Answer, AgentError> {
        match self.schema(cx).filter(|_| cx.purpose().is_none()) {
            Some(schema) => Form::of(schema, &request, &next).ask(cx, request, next).await,
            None => next.run(cx, request).await,
        }
    }
}

/// A schema, and how it is requested.
struct Form {
    schema: OutputSchema,
    /// The tool, unless the vendor enforces the schema.
    tool: Option<String>,
}

/// A classified answer.
enum Read<'a> {
    /// An intermediate answer.
    Working,
    /// The final answer, not checked yet, or why it is not JSON.
    Given(Result<Value, String>, Option<&'a ToolCall>),
}

impl Form {
    fn of(schema: OutputSchema, request: &ModelRequest, next: &NextModel<'_>) -> Self {
        let name = || {
            let mut name = FINAL_ANSWER.to_owned();
            while request.tools.iter().any(|tool| tool.name == name) {
                name.push('_');
            }
            name
        };
        Self { schema, tool: (!next.can_enforce_schema(request)).then(name) }
    }

    async fn ask(
        self,
        cx: &RunContext,
        mut request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<Answer, AgentError> {
        self.demand(&mut request);
        let mut is_second = false;
        loop {
            let said = cx.with_transcript(|transcript| transcript.messages().len());
            let answer = next.run(cx, request.clone()).await?;
            let (given, call) = match self.read(&answer.message) {
                Read::Working => return Ok(answer),
                Read::Given(given, call) => (given, call),
            };
            let checked = match given {
                Ok(value) => self.check(cx, value).await,
                Err(problems) => Err(problems),
            };
            let problems = match checked {
                Ok(value) => {
                    call.into_iter().for_each(|call| acknowledge(cx, call, ToolState::Success, "accepted"));
                    return Ok(in_form(answer, &value));
                }
                Err(problems) => problems,
            };
            if is_second {
                let value = answer_text(&answer.message, call).chars().take(SHOWN).collect();
                return Err(AgentError::Output { problems, value });
            }
            is_second = true;
            self.report_problems(cx, call, &problems);
            cx.with_transcript(|transcript| {
                request.messages.extend_from_slice(&transcript.messages()[said..]);
            });
            if let Some(tool) = &self.tool {
                request.tool_choice = ToolChoice::Tool(tool.clone());
            }
        }
    }

    /// Adds the schema to a request.
    fn demand(&self, request: &mut ModelRequest) {
        let schema = self.schema.asked();
        let Some(tool) = &self.tool else {
            let format = ResponseFormat::JsonSchema {
                name: FINAL_ANSWER.to_owned(),
                schema: schema.clone(),
                strict: true,
            };
            let mut over = ModelOptions::new();
            over.response_format = Some(format);
            request.options = Arc::new(request.options.overlaid(&over));
            return;
        };
        let description =
            "Give your answer. Call it alone, once you have all you need: its arguments are the answer.";
        let spec = ToolSpec::new(tool, description, (**schema).clone());
        request.tools = request.tools.iter().cloned().chain([spec]).collect();
        let demand = format!("Give your answer by calling `{tool}`, not as text.");
        let system = request.system.iter().map(|system| &**system);
        request.system = Some(system.chain([&*demand]).collect::<Vec<_>>().join("\n\n").into());
    }

    /// Checks an answer against the schema, on another thread if that can take long.
    async fn check(&self, cx: &RunContext, value: Value) -> Result<Value, String> {
        if !self.schema.is_costly(&value) {
            return self.schema.check(value);
        }
        let schema = self.schema.clone();
        blocking(cx.cancellation().token(), move |_| schema.check(value)).await
    }

    fn read<'a>(&self, answer: &'a Message) -> Read<'a> {
        if let Some(call) = answer.tool_calls().find(|call| Some(&call.name) == self.tool.as_ref()) {
            let arguments =
                call.parsed_arguments().map_err(|error| format!("\n- the answer is no JSON: {error}"));
            return Read::Given(arguments, Some(call));
        }
        let text = answer.text();
        // The loop handles empty answers.
        if answer.tool_calls().next().is_some() || text.trim().is_empty() {
            return Read::Working;
        }
        let value = serde_json::from_str(json_in(&text));
        Read::Given(value.map_err(|error| format!("\n- the answer is no JSON: {error}")), None)
    }

    /// Tells the model what is wrong: as the result of the call, or as a hint.
    fn report_problems(&self, cx: &RunContext, call: Option<&ToolCall>, problems: &str) {
        match call {
            Some(call) => {
                let text =
                    format!("the answer does not fit the schema:{problems}\nGive it again, corrected.");
                acknowledge(cx, call, ToolState::Error, &text);
            }
            None => {
                let how = match &self.tool {
                    Some(tool) => format!("Call `{tool}` with it."),
                    None => "Answer with the JSON alone.".to_owned(),
                };
                let hint = format!(
                    "<system-reminder>\nYour answer does not fit the schema that was asked for:{problems}\nGive it again, \
                     corrected. {how}\n</system-reminder>"
                );
                let block_id = BlockId::from_lossy(cx.new_id("output-"));
                cx.emit(EventKind::HintBlock { block_id, hint_source: "output_schema".into(), hint });
            }
        }
        cx.close(&StopReason::Cancelled);
    }
}

/// Emits the result of a call of `final_answer`, for which no tool runs.
fn acknowledge(cx: &RunContext, call: &ToolCall, state: ToolState, text: &str) {
    let (id, name): (_, Arc<str>) = (call.id.clone(), call.name.as_str().into());
    let input = call.parsed_arguments().unwrap_or(Value::Null);
    cx.emit(EventKind::tool_result_start(id.clone(), name.clone(), input));
    cx.emit(EventKind::ToolResultTextDelta { tool_call_id: id.clone(), delta: text.to_owned() });
    cx.emit(EventKind::tool_result_end(id, name, state, 0));
}

/// Returns the answer with the value as its only content; unchanged if it has that already.
fn in_form(answer: Answer, value: &Value) -> Answer {
    let is_plain = answer.message.tool_calls().next().is_none()
        && serde_json::from_str::<Value>(&answer.message.text()).is_ok_and(|said| said == *value);
    if is_plain { answer } else { Answer::new(Message::assistant(value.to_string())) }
}

fn answer_text<'a>(answer: &'a Message, call: Option<&'a ToolCall>) -> Cow<'a, str> {
    call.map_or_else(|| answer.text().into(), |call| Cow::from(&*call.arguments))
}

/// Returns the JSON in a text: all of it, or the content of a code fence, or from the first brace
/// to the last.
fn json_in(text: &str) -> &str {
    let text = text.trim();
    if text.starts_with(['{', '[', '"']) {
        return text;
    }
    let begin = text.find(['{', '[']);
    let end = text.rfind(['}', ']']);
    match (begin, end) {
        (Some(begin), Some(end)) if begin < end => &text[begin..=end],
        _ => text,
    }
}

#[cfg(test)]
mod tests;
