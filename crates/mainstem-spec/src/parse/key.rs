//! Reads the values of keys that need more than a rule.

use super::{Keyed, Reader};
use crate::{
    Dialect, FindingKind, Header, Key, McpServer, Permission, SpecError,
    dialect::Meaning,
    key,
    node::{Entry, Node, Value},
    rules::{self, Verdict},
    suggest::closest,
};

pub(crate) type Read<T> = Result<T, SpecError>;

/// The keys without which an agent may do more.
const NARROWING: [&str; 3] = ["permissions", "tools", "disallowed_tools"];

impl Reader {
    pub(super) fn keys(&mut self, keys: &[Keyed<'_>]) {
        for (key, entry) in keys {
            self.repeated_within(&entry.node);
            match self.counted(key, keys) {
                Some(first) => {
                    self.warn(key, entry.at, format!("{key:?} is ignored, because {first:?} is given too"));
                }
                None => self.key(key, entry),
            }
        }
    }

    /// Returns the name of the same key that counts instead of this one, if the file has several.
    fn counted(&self, given: &str, keys: &[Keyed<'_>]) -> Option<&'static str> {
        let name = match self.dialect.meaning(given) {
            Some((_, Meaning::Same(ours))) => ours,
            _ => given,
        };
        let key = Key::named(name).filter(|key| !key.aliases.is_empty())?;
        let first = key.names().find(|name| keys.iter().any(|(key, _)| key == name))?;
        (first != given).then_some(first)
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

    /// Notes a key that means nothing. If it resembles one that narrows what the agent may do, the
    /// file can't be used: without that key the agent could do more than was meant.
    fn unknown(&mut self, key: &str, entry: &Entry) {
        let near = closest(key, self.dialect.vocabulary());
        let narrows = near.is_some_and(|near| {
            let name = match self.dialect.meaning(near) {
                Some((_, Meaning::Same(ours))) => ours,
                _ => near,
            };
            Key::named(name).is_some_and(|key| NARROWING.contains(&key.name))
        });
        let finding = if narrows { SpecError::error } else { SpecError::warning };
        let finding = finding(format!("unknown key {key:?}")).of_kind(FindingKind::UnknownKey);
        self.found.push(finding.about(key).at(entry.at).with_suggestion(near));
    }

    /// Notes where the file says what the spec has for this key.
    pub(super) fn said(&mut self, key: &str, entry: &Entry) {
        let Some(key) = Key::named(key) else { return };
        self.places.push((key.name, entry.at));
        if key.lists_names {
            self.items.extend(entry.node.named().into_iter().map(|(name, at)| (key.name, name, at)));
        }
    }

    /// Puts one value into the spec.
    fn apply(&mut self, name: &str, entry: &Entry) -> Read<()> {
        match Key::named(name) {
            Some(key) => (key.read)(self, entry)?,
            None if name == key::SECTION => drop(entry.node.entries()?),
            None => self.unknown(name, entry),
        }
        // Flags of tools note the key that they are read as.
        if name != "tools" || !matches!(entry.node.value, Value::Map(_)) {
            self.said(name, entry);
        }
        Ok(())
    }

    pub(crate) fn name(&mut self, node: &Node) -> Read<()> {
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

    /// Errors do not repeat the value, which may be a secret.
    pub(crate) fn headers(&mut self, node: &Node) -> Read<()> {
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

    /// Names, declarations by name, or a list of both. Errors do not repeat a
    /// declaration, which may hold a secret.
    pub(crate) fn mcp_servers(&mut self, node: &Node) -> Read<()> {
        let servers: Vec<_> = match &node.value {
            Value::Map(entries) => entries.iter().map(declared).collect(),
            Value::List(items) => items.iter().map(server).collect::<Read<Vec<_>>>()?.concat(),
            _ => node.names()?.into_iter().map(McpServer::named).collect(),
        };
        self.spec.mcp_servers = Some(servers);
        Ok(())
    }

    /// Either `pattern: deny` or `deny: [pattern, …]`.
    pub(crate) fn permission(&mut self, entry: &Entry) {
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

/// Returns the value, if it satisfies the rule.
pub(crate) fn obey<T: Copy>(node: &Node, value: T, rule: impl Fn(T) -> Verdict) -> Read<T> {
    rule(value).map_err(|message| node.error(message))?;
    Ok(value)
}
