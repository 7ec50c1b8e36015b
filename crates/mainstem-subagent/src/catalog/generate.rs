//! `agent_generate`: a tool that writes a new agent file, drafted by the model.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use mainstem_message::{Failure, Message};
use mainstem_model::{Model, ModelOptions};
use mainstem_react::{Agent, Compaction, Middleware, RunContext};
use mainstem_spec::{AgentSpec, Origin, Parsed, SpecError, create_file, parse};
use mainstem_tool::{Tool, ToolContext, ToolError, ToolOutput, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    budget::metered::Metered,
    catalog::{
        CatalogEntry,
        factory::{AgentFactory, rules},
        trust,
    },
    member::{Member, engine},
    spawn::{launch::new_source, unlisted},
};

/// The tool's name, and the id of the child that drafts.
pub(crate) const GENERATE: &str = "agent_generate";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Generate {
    /// The new agent's id: a-z, 0-9, _ and -, beginning with a letter or digit.
    name: String,
    /// What it shall be for, how it shall work, and what it needs for that.
    description: String,
    /// Only show the file, and write nothing.
    #[serde(default)]
    dry_run: bool,
}

/// Drafts agent files and writes them into a workspace.
pub(crate) struct Drafts {
    /// An agent without tools, whose one answer is the file.
    drafter: Agent,
    workspace: PathBuf,
    /// The names of the tools that an agent can have.
    tools: Vec<String>,
    /// Builds the drafted agents.
    factory: AgentFactory,
}

impl Drafts {
    /// Creates a drafter with this model, inside this middleware as any other child.
    pub(crate) fn new(
        model: Arc<dyn Model>,
        mut options: ModelOptions,
        middleware: &[Arc<dyn Middleware>],
        workspace: PathBuf,
        tools: Vec<String>,
        factory: AgentFactory,
    ) -> Self {
        options.server_tools = None;
        let drafter = Agent::builder(GENERATE, model)
            .with_options(options)
            .with_max_iterations(1)
            .with_compaction(Compaction::default().with_enabled(false));
        let drafter = drafter.with_system_prompt(instructions(&tools)).build();
        #[expect(clippy::expect_used, reason = "only tools can clash")]
        let drafter = drafter.expect("it has no tools");
        let drafter = middleware.iter().fold(drafter, |drafter, one| drafter.with_innermost(one.clone()));
        Self { drafter: drafter.with_innermost(Arc::new(Metered)), workspace, tools, factory }
    }

    /// Returns the tool of one agent.
    pub(crate) fn tool(self) -> Arc<dyn Tool> {
        let description = "Draft a new agent and write its file, subagents/<name>.md; a file that is there is never changed. For a kind \
                           of task that comes again and fits none of the agents that there are.";
        let drafts = Arc::new(self);
        Arc::new(tool_fn(GENERATE, description, move |cx, generate: Generate| {
            let drafts = drafts.clone();
            async move { drafts.generate(&cx, generate).await }
        }))
    }

    async fn generate(&self, cx: &ToolContext, generate: Generate) -> Result<ToolOutput, ToolError> {
        let Generate { name, description, dry_run } = generate;
        if let Err(errors) = AgentSpec::new(&name, description.trim()).validate() {
            return Err(ToolError::new(lines(&errors)));
        }
        let (dir, path) = (self.workspace.join("subagents"), format!("subagents/{name}.md"));
        let target = dir.join(format!("{name}.md"));
        if !dry_run && cx.blocking(move |_| target.symlink_metadata().is_ok()).await {
            let there = format!("{path} is there already, and stays as it is: edit it, or take another name");
            return Err(ToolError::new(there));
        }
        let (text, parsed) = match self.draft(engine(cx)?, &name, &description).await? {
            Ok(drafted) => drafted,
            Err(output) => return Ok(output),
        };
        let warnings = warnings(&parsed);
        if dry_run {
            let status = "dry_run, nothing was written";
            return Ok(format!("path: {path}\nstatus: {status}\n{warnings}file:\n{text}").into());
        }
        let (workspace, file, written) =
            (self.workspace.clone(), dir.join(format!("{name}.md")), text.clone());
        cx.blocking(move |_| write(&workspace, &dir, &name, &written)).await?;
        let note = self.add(engine(cx)?, parsed.spec.with_origin(Origin::File(file)));
        Ok(format!("path: {path}\nstatus: written\nnote: {note}\n{warnings}file:\n{text}").into())
    }

    /// Makes a new agent available to the rest of the run. Returns a text with the result or the
    /// reason of the failure.
    fn add(&self, cx: &RunContext, spec: AgentSpec) -> String {
        let built = self.factory.build(&spec).and_then(|agent| Ok((agent, rules(&spec)?)));
        let (agent, rules) = match built {
            Ok(built) => built,
            Err(error) => return format!("it can't be spawned: {error}"),
        };
        match Member::of(cx) {
            Ok(member) => {
                member.generated.add(CatalogEntry { spec: Arc::new(spec), agent: agent.into(), rules });
                "agent_spawn can start it from now on".to_owned()
            }
            Err(_) => "it can be spawned from the next run on".to_owned(),
        }
    }

    /// Returns the file's text and the parsed agent, or the errors if the second draft is invalid,
    /// too.
    async fn draft(
        &self,
        cx: &RunContext,
        name: &str,
        description: &str,
    ) -> Result<Result<(String, Parsed), ToolOutput>, ToolError> {
        unlisted::admit(cx)?;
        let mut source = new_source(cx, self.drafter.id(), Some(self.drafter.name()), None, name);
        let (mut said, mut task) = (Vec::<Arc<Message>>::new(), task(name, description));
        loop {
            let (outcome, messages) = unlisted::run(&self.drafter, cx, &source, said.clone(), task).await?;
            let Some(answer) = outcome.answer else {
                let why =
                    outcome.error.map_or_else(String::new, |error| format!(": {}", Failure::from(&error)));
                return Err(ToolError::new(format!("the draft failed{why}")));
            };
            let text = unfenced(&answer.text());
            let errors = match self.check(name, &text) {
                Ok(parsed) => return Ok(Ok((text, parsed))),
                Err(errors) => lines(&errors),
            };
            if source.turn > 1 {
                let failed =
                    format!("the draft is no agent, so nothing was written:\n{errors}\nfile:\n{text}");
                return Ok(Err(ToolOutput::failed(failed)));
            }
            source.turn += 1;
            said.extend(messages);
            task = format!("This is no agent file:\n{errors}\nAnswer with the whole file again, corrected.");
        }
    }

    /// Parses the draft as the loader does, and rejects parts that need trust, an address, and
    /// unknown tools, which the agent would silently lack.
    fn check(&self, name: &str, text: &str) -> Result<Parsed, Vec<SpecError>> {
        let parsed = parse(name, text, Path::new(&format!("subagents/{name}.md")))?;
        let known = self.tools.join(", ");
        let listed = parsed.spec.tools.iter().flatten();
        let listed = listed.filter(|tool| *tool != "*" && !self.tools.contains(tool));
        let unknown = listed.map(|tool| {
            SpecError::error(format!("there is no tool {tool:?}; known: {known}")).about("tools")
        });
        let parts = trust::parts(&parsed.spec, Path::new(""));
        let untrusted = parts.iter().map(|part| {
            SpecError::error(format!("{} needs the user's trust: leave it out", part.key())).about(part.key())
        });
        let remote = parsed
            .spec
            .url
            .as_ref()
            .map(|_| SpecError::error("a generated agent runs here: leave url out").about("url"));
        let errors: Vec<_> = unknown.chain(untrusted).chain(remote).collect();
        if errors.is_empty() { Ok(parsed) } else { Err(errors) }
    }
}

/// Writes a file in `subagents` of the workspace, which may be a link but must not lead out of it.
fn write(workspace: &Path, dir: &Path, name: &str, text: &str) -> Result<(), ToolError> {
    std::fs::create_dir_all(dir)?;
    if !dir.canonicalize()?.starts_with(workspace.canonicalize()?) {
        return Err(ToolError::new("subagents leads out of the workspace, so nothing was written"));
    }
    create_file(dir, name, text)?;
    Ok(())
}

/// Removes a fence, which models like to put around a file.
fn unfenced(text: &str) -> String {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    let inner = inner.and_then(|text| text.split_once('\n')).map(|(_, inner)| inner.trim());
    format!("{}\n", inner.unwrap_or(text))
}

fn warnings(parsed: &Parsed) -> String {
    if parsed.warnings.is_empty() { String::new() } else { format!("{}\n", lines(&parsed.warnings)) }
}

fn lines(found: &[SpecError]) -> String {
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn task(name: &str, description: &str) -> String {
    format!("Write the file of the agent `{name}`. What it shall be:\n\n{}", description.trim())
}

fn instructions(tools: &[String]) -> String {
    format!("{INSTRUCTIONS}\n\nTools that exist: {}", tools.join(", "))
}

const INSTRUCTIONS: &str = "\
You write files that declare agents. Answer with the file and nothing else: no fence around it, no word before or after it.

---
description: \"What another agent reads to decide whether to hand it a task, in one sentence\"
tools: [read_file, grep_files]
steps: 10
---
The agent's instructions, in the second person.

The description is required. `tools` lists what the agent can do and nothing it has no use for; without it, it can do all that its caller \
can. `steps` is the most model calls it may make. Leave every other key out. The instructions say how it works, what it must not do, and \
what its answer looks like: the last answer is all that its caller gets of it.";

#[cfg(test)]
mod tests;
