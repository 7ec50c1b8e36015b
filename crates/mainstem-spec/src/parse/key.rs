//! Which key means what.

use std::time::Duration;

use super::{Keyed, Reader};
use crate::{
    Header, Mode, Permission, SpecError, WorkspaceMode,
    node::{Entry, Node, Value},
    rules::{self, Verdict},
    suggest::closest,
};

/// Every key there is, for "did you mean".
pub(super) const KEYS: [&str; 23] = [
    "name",
    "description",
    "model",
    "steps",
    "max_iters",
    "maxTurns",
    "temperature",
    "top_p",
    "tools",
    "disallowed_tools",
    "skills",
    "hidden",
    "mode",
    "workspace",
    "workspace.mode",
    "workspace.path",
    "url",
    "headers",
    "permissions",
    "persist_session",
    "timeout_seconds",
    "max_tokens_total",
    "output_schema",
];

/// Three names for one thing; an earlier one wins.
const STEPS: [&str; 3] = ["steps", "max_iters", "maxTurns"];

type Read<T> = Result<T, SpecError>;

impl Reader {
    pub(super) fn keys(&mut self, keys: &[Keyed<'_>]) {
        let steps = STEPS.into_iter().find(|name| keys.iter().any(|(key, _)| key == name));
        for (key, entry) in keys {
            self.repeated_within(&entry.node);
            match steps {
                Some(steps) if key != steps && STEPS.contains(&key.as_str()) => {
                    self.warn(key, entry.at, format!("{key:?} is ignored, because {steps:?} is given too"));
                }
                _ => self.key(key, entry),
            }
        }
    }

    fn key(&mut self, key: &str, entry: &Entry) {
        match self.apply(key, &entry.node) {
            Ok(true) => {}
            Ok(false) => {
                let warning = SpecError::warning(format!("unknown key {key:?}")).about(key).at(entry.at);
                self.found.push(warning.with_suggestion(closest(key, KEYS)));
            }
            Err(error) => self.fail(key, entry, error),
        }
    }

    /// Puts one value into the spec; false if there is no such key.
    fn apply(&mut self, key: &str, node: &Node) -> Read<bool> {
        let spec = &mut self.spec;
        match key {
            "name" => self.name(node)?,
            "description" => {
                spec.description = obey(node, node.text()?, rules::description)?.trim().to_owned()
            }
            "model" => spec.model = Some(word(node)?),
            "steps" | "max_iters" | "maxTurns" => spec.steps = obey(node, node.whole()?, rules::steps)?,
            "temperature" => spec.temperature = Some(obey(node, node.number()?, rules::temperature)?),
            "top_p" => spec.top_p = Some(obey(node, node.number()?, rules::top_p)?),
            "tools" => spec.tools = Some(node.names()?),
            "disallowed_tools" => spec.disallowed_tools = node.names()?,
            "skills" => spec.skills = Some(node.names()?),
            "hidden" => spec.hidden = node.flag()?,
            "mode" => spec.mode = node.choice(&Mode::NAMES)?,
            "workspace" => drop(node.entries()?),
            "workspace.mode" => spec.workspace.mode = node.choice(&WorkspaceMode::NAMES)?,
            "workspace.path" => {
                spec.workspace.path = Some(obey(node, node.text()?, rules::workspace_path)?.into());
            }
            "url" => spec.url = Some(obey(node, node.text()?, rules::url)?.to_owned()),
            "headers" => self.headers(node)?,
            "permissions" => node.entries()?.iter().for_each(|entry| self.permission(entry)),
            "persist_session" => spec.persist_session = node.flag()?,
            "timeout_seconds" => spec.timeout = Some(Duration::from_secs(node.whole()?)),
            "max_tokens_total" => {
                spec.max_tokens_total = Some(obey(node, node.whole()?, rules::max_tokens_total)?);
            }
            "output_schema" => {
                spec.output_schema = Some(obey(node, &node.json(), rules::output_schema)?.clone())
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn name(&mut self, node: &Node) -> Read<()> {
        let name = node.text()?;
        if name != self.spec.id {
            let message = format!("the agent is called {:?} after its file, not {name:?}", self.spec.id);
            self.warn("name", node.at, message);
        }
        Ok(())
    }

    /// Says nothing of what it found: it may be a secret.
    fn headers(&mut self, node: &Node) -> Read<()> {
        let entries = node.entries().map_err(|_| node.error("expected header names, each with its value"))?;
        for entry in entries {
            let (name, node) = (entry.key.as_str(), &entry.node);
            let text = node.text().map_err(|_| {
                node.error(format!("the value of header {name:?} is no text: put it in quotes"))
            });
            match text.and_then(|text| obey(node, text, |text| rules::header(name, text))) {
                Ok(value) => self.spec.headers.push(Header::new(name, value)),
                Err(error) => self.fail("headers", entry, error),
            }
        }
        Ok(())
    }

    /// Either `pattern: deny` or `deny: [pattern, …]`.
    fn permission(&mut self, entry: &Entry) {
        let rules = match &entry.node.value {
            Value::List(_) => {
                let key = Node { at: entry.at, value: Value::Text(entry.key.clone()) };
                key.choice(&Permission::NAMES).and_then(|permission| {
                    Ok(entry.node.names()?.into_iter().map(|pattern| (pattern, permission)).collect())
                })
            }
            _ => {
                entry.node.choice(&Permission::NAMES).map(|permission| vec![(entry.key.clone(), permission)])
            }
        };
        match rules {
            Ok(rules) => self.spec.permissions.extend(rules),
            Err(error) => self.fail("permissions", entry, error),
        }
    }

    fn fail(&mut self, key: &str, entry: &Entry, error: SpecError) {
        // An absent value has no place of its own.
        let at = if matches!(entry.node.value, Value::Null) { Some(entry.at) } else { error.position };
        self.found.push(SpecError { position: at, ..error.about(key) });
    }
}

fn word(node: &Node) -> Read<String> {
    let text = node.text()?.trim();
    if text.is_empty() { Err(node.error("the value is empty")) } else { Ok(text.to_owned()) }
}

/// The value, if it satisfies the rule.
fn obey<T: Copy>(node: &Node, value: T, rule: impl Fn(T) -> Verdict) -> Read<T> {
    rule(value).map_err(|message| node.error(message))?;
    Ok(value)
}
