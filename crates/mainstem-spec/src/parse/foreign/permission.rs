//! OpenCode's permissions: the last rule that fits decides there, the strictest one here. So
//! nothing is allowed that was not.

use super::super::{Reader, key::Read};
use crate::{
    Dialect, Permission,
    dialect::our_tools,
    node::{Entry, Node, Value},
};

/// They are about OpenCode's own workings.
const WITHOUT_COUNTERPART: [&str; 2] = ["doom_loop", "external_directory"];

impl Reader {
    pub(super) fn foreign_permissions(&mut self, key: &str, entry: &Entry) -> Read<()> {
        let before = self.spec.permissions.len();
        match &entry.node.value {
            Value::Map(tools) => tools.iter().for_each(|tool| self.about_tool(key, tool)),
            Value::List(rules) => rules.iter().for_each(|rule| self.rule(key, rule)),
            _ => {
                let permission = entry.node.choice(&Permission::NAMES)?;
                self.spec.permissions.push(("*".to_owned(), permission));
            }
        }
        let rules = &self.spec.permissions[before..];
        if !rules.is_empty() {
            let strict = |(_, permission): &(String, Permission)| *permission != Permission::Allow;
            let mixed = rules.iter().any(strict) && !rules.iter().all(strict);
            let order = if mixed { "; the strictest rule decides here, not the last one" } else { "" };
            self.warn(key, entry.at, format!("these rules are read as \"permissions\" of ours{order}"));
            self.said("permissions", entry);
        }
        Ok(())
    }

    /// `bash: ask`, or `bash: {"git *": allow}`.
    fn about_tool(&mut self, key: &str, entry: &Entry) {
        if WITHOUT_COUNTERPART.contains(&entry.key.as_str()) {
            self.warn(key, entry.at, format!("{:?} has no counterpart here and is ignored", entry.key));
            return;
        }
        match &entry.node.value {
            Value::Map(globs) => globs.iter().for_each(|glob| {
                self.permit(key, glob, &entry.key, &glob.key, &glob.node);
            }),
            _ => self.permit(key, entry, &entry.key, "*", &entry.node),
        }
    }

    /// `{action: shell, resource: "git *", effect: allow}`
    fn rule(&mut self, key: &str, rule: &Node) {
        let place =
            Entry { key: key.to_owned(), at: rule.at, node: Node { at: rule.at, value: Value::Null } };
        let field = |name: &str| {
            let found = rule.entries()?.iter().find(|entry| entry.key == name);
            found.map(|entry| &entry.node).ok_or_else(|| rule.error(format!("the rule has no {name:?}")))
        };
        let read = || Ok((field("action")?.text()?, field("resource")?.text()?, field("effect")?));
        match read() {
            Ok((tool, glob, effect)) => self.permit(key, &place, tool, glob, effect),
            Err(error) => self.fail(key, &place, error),
        }
    }

    fn permit(&mut self, key: &str, place: &Entry, tool: &str, glob: &str, effect: &Node) {
        match effect.choice(&Permission::NAMES) {
            Ok(permission) => {
                let rules = patterns(tool, glob, permission);
                self.spec.permissions.extend(rules.into_iter().map(|pattern| (pattern, permission)));
            }
            Err(error) => self.fail(key, place, error),
        }
    }
}

/// The same in our language: a refusal may come out broader, never narrower.
fn patterns(tool: &str, glob: &str, permission: Permission) -> Vec<String> {
    let ours = match tool {
        // It stands for everything that changes files.
        "edit" => &["edit_file", "write_file"][..],
        _ => our_tools(Dialect::OpenCode, tool).unwrap_or_default(),
    };
    let names = ours.iter().copied();
    let written = (permission != Permission::Allow || ours.is_empty()) && !ours.contains(&tool);
    let names = names.chain(written.then_some(tool));
    names
        .flat_map(|name| globs(name, glob, permission).into_iter().map(move |glob| format!("{name}{glob}")))
        .collect()
}

fn globs(tool: &str, glob: &str, permission: Permission) -> Vec<String> {
    if glob.chars().all(|c| c == '*') {
        return vec![String::new()];
    }
    let of_field =
        |field: &str, globs: Vec<String>| globs.iter().map(|glob| format!("({field}: {glob})")).collect();
    match tool {
        "agent_spawn" => of_field("agent_id", vec![glob.to_owned()]),
        "agent_fanout" => of_field("/spawns/*/agent_id", vec![glob.to_owned()]),
        "read_file" | "write_file" | "edit_file" | "list_files" => of_field("path", paths(glob, permission)),
        // What stands before a colon would be taken for a field.
        "shell" if glob.contains(": ") => of_field("command", vec![glob.to_owned()]),
        _ => vec![format!("({glob})")],
    }
}

/// There `*` crosses directories, here only `**` does.
fn paths(glob: &str, permission: Permission) -> Vec<String> {
    if permission == Permission::Allow || !glob.contains('*') {
        return vec![glob.to_owned()];
    }
    let mut path: Vec<String> = Vec::new();
    for part in glob.split('/') {
        let inner = part.trim_matches('*');
        match part.contains('*') {
            false => path.push(part.to_owned()),
            true if inner.is_empty() || inner.contains('*') => path.push("**".to_owned()),
            true => {
                path.extend(["**".to_owned(), part.to_owned()]);
                path.extend(part.ends_with('*').then(|| "**".to_owned()));
            }
        }
    }
    path.dedup_by(|after, before| after == "**" && before == "**");
    let file = path.last().is_some_and(|part| part == "**") && path.len() > 1 && !glob.ends_with("/*");
    // What the last star stands for may be the rest of a name, or directories too.
    let without = file.then(|| path[..path.len() - 1].join("/"));
    without.into_iter().chain([path.join("/")]).collect()
}
