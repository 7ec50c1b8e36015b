//! The parts of prompts by which agents learn about one another.

use std::fmt::Write as _;

use mainstem_spec::{AgentSpec, Skill, WorkspaceMode};

use crate::catalog::Catalog;

/// Returns a child's instructions: its own, what a child does, and, if it has tools for files,
/// which agents see them.
pub(crate) fn child_prompt(spec: &AgentSpec, has_files: bool) -> String {
    let own = spec.prompt.trim();
    let gap = if own.is_empty() { "" } else { "\n\n" };
    let files = match spec.workspace.mode {
        _ if !has_files => "",
        WorkspaceMode::Shared => SHARED,
        _ => ISOLATED,
    };
    format!("{own}{gap}{CHILD}{files}")
}

const CHILD: &str = "# You are a subagent
Another agent gave you the task in the first message; no person reads along.
- Do that task and nothing else, then stop.
- Your last reply is all that the other agent gets of your work: write the result itself into it, complete and short.
- If something is missing or fails, say what, and what you did instead; do not ask back.";

const SHARED: &str = "
- You work in the directory of the other agent: name the files that you changed.";

const ISOLATED: &str = "
- You work in a directory of your own, which the other agent does not see: put what it needs from there into your reply.";

/// The part of a prompt in plan mode.
pub(crate) const PLANNING: &str = "# Plan mode
You are planning: you and your subagents can only run tools that change nothing; any other call is denied. Look around, then make \
a plan. The work begins when a person has accepted it.";

/// Returns the part of a prompt that lists the agents to spawn, and says how.
pub(crate) fn fleet_section(catalog: &Catalog, has_files: bool) -> String {
    let mut text = format!("{FLEET}{}\n\nAgents:", if has_files { FILES } else { "" });
    for entry in catalog.offered() {
        let spec = &entry.spec;
        let is_shared = has_files && spec.workspace.mode == WorkspaceMode::Shared;
        let whose = if is_shared { " Works in your directory." } else { "" };
        let _ = write!(text, "\n- `{}`: {}{whose}", spec.id, spec.description);
    }
    text
}

const FLEET: &str = "# Subagents
You can hand tasks to other agents. Each starts without your conversation, so put everything it needs into `task`.
- `agent_spawn` starts one and returns its reply. Several calls in one turn run at once; so do the tasks of one `agent_fanout`.
- `agent_send` asks a child that has answered something further; it still knows its conversation. Name it by `agent_key` or `label`.
- `agent_list` shows your children.
- With `timeout_seconds: 0` you do not wait: you go on, and are told when it has ended.
Hand over what is self-contained or can run in parallel; do small things yourself. If a child fails, read why, then try \
differently or go on without it.";

const FILES: &str = "
An agent sees your files only if it is said to work in your directory; to any other give what it needs to know in `task`.";

/// Returns the part of a prompt that lists the skills to load.
pub(crate) fn skills_section<'a>(skills: impl Iterator<Item = &'a Skill>) -> Option<String> {
    let mut skills = skills.peekable();
    skills.peek()?;
    let mut text = SKILLS.to_owned();
    for skill in skills.by_ref().take(MAX_SKILLS) {
        let _ = write!(text, "\n- `{}`: {}", skill.name, line(&skill.description));
    }
    let more = skills.count();
    if more > 0 {
        let _ = write!(text, "\n… and {more} more that are not listed here");
    }
    Some(text)
}

const SKILLS: &str = "# Skills
Instructions for particular tasks. Before you do what one of them is about, read it with `load_skill`.";

/// How many skills are listed, and how much of each description, in characters.
const MAX_SKILLS: usize = 100;
const MAX_DESCRIPTION: usize = 300;

/// Returns a text as one line of limited length.
fn line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MAX_DESCRIPTION) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
