//! Translates values that another product writes in another way, with a warning.

mod permission;
mod tools;

use std::time::Duration;

use super::{
    Reader,
    key::{Read, word},
};
use crate::{
    Dialect, Mode, Position, Protocol, SpecError,
    dialect::{Foreign, Model},
    node::{Entry, Node, Value},
};

const NO_RIGHTS: &str = "an agent's permissions narrow its parent's and never widen them";

/// Who may call the agent, in Copilot's keys.
#[derive(Debug, Default)]
pub(super) struct Invocation {
    by_user: Option<bool>,
    by_model: Option<bool>,
    /// The retired key; `by_model` wins over it.
    inferred: Option<bool>,
    said: Option<(&'static str, Position)>,
}

impl Reader {
    pub(super) fn foreign(&mut self, foreign: Foreign, key: &str, entry: &Entry) -> Read<()> {
        let node = &entry.node;
        match foreign {
            Foreign::Agents => self.agents(key, entry),
            Foreign::Background => self.background(key, entry),
            Foreign::Disabled => {
                self.disabled |= node.flag()?;
                if self.disabled {
                    self.warn(key, entry.at, "the agent is switched off and left out");
                }
                Ok(())
            }
            Foreign::Kind => self.kind(key, entry),
            Foreign::Permission => self.foreign_permissions(key, entry),
            Foreign::PermissionMode => self.permission_mode(key, entry),
            Foreign::Prompt => {
                self.prompt = Some((node.at, node.text()?.trim().to_owned()));
                Ok(())
            }
            Foreign::ReadOnly => {
                if node.flag()? {
                    self.read_only(key, "true", entry);
                }
                Ok(())
            }
            Foreign::Sandbox => self.sandbox(key, entry),
            Foreign::Infer => self.invocable("infer", entry, |said, flag| said.inferred = Some(flag)),
            Foreign::ModelInvocation => {
                self.invocable("disable-model-invocation", entry, |said, flag| said.by_model = Some(!flag))
            }
            Foreign::UserInvocable => {
                self.invocable("user-invocable", entry, |said, flag| said.by_user = Some(flag))
            }
        }
    }

    pub(crate) fn model(&mut self, node: &Node) -> Read<()> {
        if let (Dialect::Copilot, Value::List(_)) = (self.dialect, &node.value) {
            self.warn("model", node.at, format!("the models are {}'s; the parent's is used", self.dialect));
            return Ok(());
        }
        let name = word(node)?;
        match self.dialect.model(&name) {
            Model::AsWritten => self.spec.model = Some(name),
            Model::Ours(ours) => {
                self.warn("model", node.at, format!("model {name:?} is read as {ours:?}"));
                self.spec.model = Some(ours);
            }
            Model::Parents if name == "inherit" => {
                let said = "\"inherit\" is an alias of another product: the parent's model is used, as without the key";
                self.warn("model", node.at, said);
            }
            Model::Parents => {
                let said = format!(
                    "model {name:?} is an alias of {}: the parent's is used; name another as provider:model",
                    self.dialect
                );
                self.warn("model", node.at, said);
            }
        }
        Ok(())
    }

    pub(crate) fn mode(&mut self, node: &Node) -> Read<()> {
        // The mode of a chat, in files that are older than agents.
        let old =
            matches!(&node.value, Value::Text(text) if ["agent", "ask", "edit"].contains(&text.as_str()));
        if self.dialect == Dialect::Copilot && old {
            self.warn("mode", node.at, "\"mode\" of Copilot is ignored: it says how a chat works");
        } else {
            self.spec.mode = node.choice(&Mode::NAMES)?;
        }
        Ok(())
    }

    pub(crate) fn hidden(&mut self, node: &Node) -> Read<()> {
        self.spec.hidden = node.flag()?;
        if self.spec.hidden && self.dialect == Dialect::OpenCode {
            self.warn("hidden", node.at, "a hidden agent can't be spawned by a model either");
        }
        Ok(())
    }

    fn background(&mut self, key: &str, entry: &Entry) -> Read<()> {
        if entry.node.flag()? {
            self.warn(key, entry.at, format!("{key:?} is read as \"timeout_seconds\": 0"));
            self.spec.timeout = Some(Duration::ZERO);
            self.said("timeout_seconds", entry);
        }
        Ok(())
    }

    fn permission_mode(&mut self, key: &str, entry: &Entry) -> Read<()> {
        let mode = word(&entry.node)?;
        if mode == "plan" {
            self.read_only(key, "\"plan\"", entry);
        } else {
            self.warn(key, entry.at, format!("{key:?} of Claude Code is ignored: {NO_RIGHTS}"));
        }
        Ok(())
    }

    /// A sandbox that can't be written. The others widen what is allowed, or are as here.
    fn sandbox(&mut self, key: &str, entry: &Entry) -> Read<()> {
        match word(&entry.node)?.as_str() {
            "read-only" => self.read_only(key, "\"read-only\"", entry),
            "workspace-write" => {}
            _ => self.warn(key, entry.at, format!("{key:?} of Codex is ignored: {NO_RIGHTS}")),
        }
        Ok(())
    }

    fn read_only(&mut self, key: &str, value: &str, entry: &Entry) {
        let tools = ["write_file", "edit_file", "shell"];
        let said = format!("{key:?} {value} is read as \"disallowed_tools\": {}", tools.join(", "));
        self.warn(key, entry.at, said);
        self.spec.disallowed_tools.extend(tools.map(str::to_owned));
        self.said("disallowed_tools", entry);
    }

    /// An agent of another server speaks A2A.
    fn kind(&mut self, key: &str, entry: &Entry) -> Read<()> {
        if entry.node.choice(&[("local", false), ("remote", true)])? {
            self.warn(key, entry.at, format!("{key:?} \"remote\" is read as \"protocol\": a2a"));
            self.spec.protocol = Some(Protocol::A2a);
            self.said("protocol", entry);
        }
        Ok(())
    }

    fn agents(&mut self, key: &str, entry: &Entry) -> Read<()> {
        let names = entry.node.names()?;
        if names.iter().any(|name| name == "*") {
            return Ok(());
        }
        let said = "which agents it may spawn can't be limited by name: it spawns none";
        self.warn(key, entry.at, format!("{key:?} of {} is not obeyed: {said}", Dialect::Copilot));
        self.spec.disallowed_tools.extend(["agent_spawn", "agent_fanout"].map(str::to_owned));
        self.said("disallowed_tools", entry);
        Ok(())
    }

    fn invocable(
        &mut self,
        key: &'static str,
        entry: &Entry,
        set: impl FnOnce(&mut Invocation, bool),
    ) -> Read<()> {
        set(&mut self.invocation, entry.node.flag()?);
        self.invocation.said = Some((key, entry.at));
        Ok(())
    }

    /// Applies the keys about who may call the agent.
    pub(super) fn invoked(&mut self) {
        let Invocation { by_user, by_model, inferred, said } = std::mem::take(&mut self.invocation);
        let Some((key, at)) = said else { return };
        let read_as = match (by_user.unwrap_or(true), by_model.or(inferred).unwrap_or(true)) {
            (true, true) => return,
            (true, false) => {
                self.spec.mode = Mode::Primary;
                "\"mode\": primary"
            }
            (false, true) => {
                self.spec.mode = Mode::Subagent;
                "\"mode\": subagent"
            }
            (false, false) => {
                self.spec.hidden = true;
                "\"hidden\": true"
            }
        };
        self.places.push((if self.spec.hidden { "hidden" } else { "mode" }, at));
        self.warn(key, at, format!("{key:?} is read as {read_as}"));
    }

    /// Applies `prompt`, the prompt of a file that has none below its front matter.
    pub(super) fn prompted(&mut self) {
        let Some((at, prompt)) = self.prompt.take() else { return };
        if !self.spec.prompt.is_empty() {
            self.warn("prompt", at, "\"prompt\" is ignored, because there is a prompt below");
        } else if prompt.contains("{file:") {
            let message =
                "the prompt is in another file, which isn't followed: put it below the front matter";
            self.found.push(SpecError::error(message).about("prompt").at(at));
        } else {
            self.spec.prompt = prompt;
        }
    }

    fn disallow(&mut self, name: &str) {
        // A tool is listed by its whole name; a pattern is a rule.
        if name.contains(['*', '?', '(']) {
            self.spec.permissions.push((name.to_owned(), crate::Permission::Deny));
        } else if !self.spec.disallowed_tools.iter().any(|known| known == name) {
            self.spec.disallowed_tools.push(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
