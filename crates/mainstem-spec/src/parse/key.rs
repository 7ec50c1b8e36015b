//! Which key means what.

use std::time::Duration;

use super::{Keyed, Reader};
use crate::{
    Dialect, FindingKind, Header, McpServer, Permission, SpecError, WorkspaceMode,
    dialect::Meaning,
    node::{Entry, Node, Value},
    rules::{self, Verdict},
    suggest::closest,
};

/// Every key there is, for "did you mean".
pub(crate) const KEYS: [&str; 24] = [
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
    "mcp_servers",
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

/// The keys whose listed names are looked up by later checks.
const LISTS: [&str; 6] = ["model", "tools", "disallowed_tools", "skills", "mcp_servers", "permissions"];

/// Four names for one thing; an earlier one wins.
const STEPS: [&str; 4] = ["steps", "max_iters", "maxTurns", "maxSteps"];

pub(super) type Read<T> = Result<T, SpecError>;

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
        let done = match self.dialect.meaning(key) {
            None => self.apply(key, entry),
            Some((_, Meaning::Read(foreign))) => self.foreign(foreign, key, entry),
            Some((_, Meaning::Same(ours))) => {
                self.warn(key, entry.at, format!("{key:?} is read as {ours:?}"));
                self.apply(ours, entry)
            }
            Some((product, Meaning::Ignored(why))) => {
                self.warn(key, entry.at, format!("{key:?} of {product} is ignored: {why}"));
                Ok(())
            }
        };
        if let Err(error) = done {
            self.fail(key, entry, error);
        }
    }

    fn unknown(&mut self, key: &str, entry: &Entry) {
        let warning = SpecError::warning(format!("unknown key {key:?}")).of_kind(FindingKind::UnknownKey);
        let warning = warning.about(key).at(entry.at);
        self.found.push(warning.with_suggestion(closest(key, self.dialect.vocabulary())));
    }

    /// Notes where the file says what the spec has for this key.
    pub(super) fn said(&mut self, key: &str, entry: &Entry) {
        let key = if STEPS.contains(&key) { "steps" } else { key };
        if let Some(key) = KEYS.into_iter().find(|name| *name == key) {
            self.places.push((key, entry.at));
            if LISTS.contains(&key) {
                self.items.extend(entry.node.named().into_iter().map(|(name, at)| (key, name, at)));
            }
        }
    }

    /// Puts one value into the spec.
    fn apply(&mut self, key: &str, entry: &Entry) -> Read<()> {
        let node = &entry.node;
        let spec = &mut self.spec;
        match key {
            "name" => self.name(node)?,
            "description" => {
                spec.description = obey(node, node.text()?, rules::description)?.trim().to_owned()
            }
            "model" => self.model(node)?,
            "steps" | "max_iters" | "maxTurns" => spec.steps = obey(node, node.whole()?, rules::steps)?,
            "temperature" => spec.temperature = Some(obey(node, node.number()?, rules::temperature)?),
            "top_p" => spec.top_p = Some(obey(node, node.number()?, rules::top_p)?),
            "tools" if matches!(node.value, Value::Map(_)) => return self.tool_flags(node.entries()?),
            "tools" => self.tools(node)?,
            "disallowed_tools" => self.disallowed_tools(node)?,
            "skills" => spec.skills = Some(node.names()?),
            "mcp_servers" => self.mcp_servers(node)?,
            "hidden" => self.hidden(node)?,
            "mode" => self.mode(node)?,
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
            _ => self.unknown(key, entry),
        }
        self.said(key, entry);
        Ok(())
    }

    fn name(&mut self, node: &Node) -> Read<()> {
        let name = node.text()?;
        // Elsewhere it is what people see.
        let is_shown = self.dialect != Dialect::Mainstem;
        let same = is_shown && rules::nearest_id(name).as_ref() == Some(&self.spec.id);
        if name != self.spec.id && !same {
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

    /// Names, declarations by name, or a list of both. Says nothing of what a declaration holds:
    /// that may be a secret.
    fn mcp_servers(&mut self, node: &Node) -> Read<()> {
        let servers: Vec<_> = match &node.value {
            Value::Map(entries) => entries.iter().map(declared).collect(),
            Value::List(items) => items.iter().map(server).collect::<Read<Vec<_>>>()?.concat(),
            _ => node.names()?.into_iter().map(McpServer::named).collect(),
        };
        self.spec.mcp_servers = Some(servers);
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

    pub(super) fn fail(&mut self, key: &str, entry: &Entry, error: SpecError) {
        // An absent value has no place of its own.
        let at = if matches!(entry.node.value, Value::Null) { Some(entry.at) } else { error.position };
        self.found.push(SpecError { position: at, ..error.about(key) });
    }
}

/// One item of a list of MCP servers.
fn server(item: &Node) -> Read<Vec<McpServer>> {
    match &item.value {
        Value::Text(name) => Ok(vec![McpServer::named(name.trim())]),
        Value::Map(entries) => Ok(entries.iter().map(declared).collect()),
        _ => Err(item.error("expected the name of an MCP server, or a name and how it is reached")),
    }
}

fn declared(entry: &Entry) -> McpServer {
    match &entry.node.value {
        Value::Null => McpServer::named(&*entry.key),
        _ => McpServer::declared(&*entry.key, entry.node.json()),
    }
}

pub(super) fn word(node: &Node) -> Read<String> {
    let text = node.text()?.trim();
    if text.is_empty() { Err(node.error("the value is empty")) } else { Ok(text.to_owned()) }
}

/// The value, if it satisfies the rule.
fn obey<T: Copy>(node: &Node, value: T, rule: impl Fn(T) -> Verdict) -> Read<T> {
    rule(value).map_err(|message| node.error(message))?;
    Ok(value)
}
