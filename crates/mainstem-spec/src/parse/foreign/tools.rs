//! `tools` and `disallowed_tools`: lists of names, of which other products have their own.

use std::collections::HashSet;

use super::super::{Reader, key::Read};
use crate::{
    Dialect,
    dialect::{foreign_tool, our_tools, server_tool},
    node::{Entry, Node},
};

/// Every tool that is inherited.
const ALL: &str = "*";

/// Ours that change files.
const EDITS: [&str; 2] = ["write_file", "edit_file"];

impl Reader {
    pub(crate) fn tools(&mut self, node: &Node) -> Read<()> {
        let names = node.names()?;
        // Alone it is the default; with other names it adds them to the inherited tools.
        if names.iter().all(|name| name == ALL) && !names.is_empty() {
            self.spec.tools = None;
            return Ok(());
        }
        let native = self.dialect == Dialect::Mainstem;
        let (whole, parts): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| native || !name.contains('('));
        self.strange_names("tools", node, &whole);
        for name in parts {
            let why = "a tool is listed as a whole, and narrowed in \"permissions\"";
            self.warn("tools", node.at, format!("{name:?} is left out: {why}"));
        }
        let mut tools: Vec<String> = Vec::new();
        for name in whole {
            match our_tools(self.dialect, &name) {
                Some(ours) if !ours.is_empty() => tools.extend(ours.iter().map(|tool| (*tool).to_owned())),
                _ => tools.push(server_tool(self.dialect, &name).unwrap_or(name)),
            }
        }
        let mut seen = HashSet::new();
        tools.retain(|tool| seen.insert(tool.clone()));
        self.spec.tools = Some(tools);
        Ok(())
    }

    /// `tools: {write: false}` takes a tool away, and `{"*": false, read: true}` leaves only those
    /// that are true. Otherwise `true` says what holds anyway.
    pub(crate) fn tool_flags(&mut self, flags: &[Entry]) -> Read<()> {
        let (mut on, mut off) = (Vec::new(), Vec::new());
        for entry in flags {
            if entry.node.flag()? { &mut on } else { &mut off }.push(entry.key.as_str());
        }
        let Some(at) = flags.first().map(|entry| entry.at) else { return Ok(()) };
        if off.contains(&"*") {
            let ours = |name: &str| match our_tools(Dialect::OpenCode, name) {
                Some(ours) if !ours.is_empty() => ours.iter().map(|tool| (*tool).to_owned()).collect(),
                _ => vec![name.to_owned()],
            };
            let tools: Vec<String> = on.into_iter().flat_map(ours).collect();
            self.warn("tools", at, format!("these flags are read as \"tools\": {}", tools.join(", ")));
            self.places.push(("tools", at));
            self.spec.tools = Some(tools);
            return Ok(());
        }
        let mut refused: Vec<_> = off.iter().flat_map(|name| self.flag_refuses(name)).collect();
        let mut seen = HashSet::new();
        refused.retain(|tool| seen.insert(tool.clone()));
        let said = if refused.is_empty() {
            "nothing, so all tools are inherited".to_owned()
        } else {
            refused.join(", ")
        };
        self.warn("tools", at, format!("these flags are read as \"disallowed_tools\": {said}"));
        refused.iter().for_each(|name| self.disallow(name));
        self.places.push(("disallowed_tools", at));
        Ok(())
    }

    /// There each tool that changes files stands for all of them.
    fn flag_refuses(&self, name: &str) -> Vec<String> {
        let mut refused = self.refused(Dialect::OpenCode, name);
        if our_tools(Dialect::OpenCode, name).is_some_and(|ours| ours.iter().any(|tool| EDITS.contains(tool)))
        {
            refused.extend(EDITS.map(str::to_owned));
        }
        refused
    }

    pub(crate) fn disallowed_tools(&mut self, node: &Node) -> Read<()> {
        let names = node.names()?;
        self.strange_names("disallowed_tools", node, &names);
        for name in names {
            self.refused(self.dialect, &name).iter().for_each(|name| self.disallow(name));
        }
        Ok(())
    }

    /// What a tool that is refused is called: a refusal holds under the name that is written, and
    /// under ours.
    pub(super) fn refused(&self, dialect: Dialect, name: &str) -> Vec<String> {
        let (tool, arguments) = match name.split_once('(') {
            Some((tool, rest)) => (tool.trim(), Some(rest.trim_end_matches(')'))),
            None => (name, None),
        };
        let ours = our_tools(dialect, tool).unwrap_or_default().iter().copied();
        let names = [tool].into_iter().chain(ours.filter(|ours| *ours != tool));
        match arguments {
            // `Bash(rm:*)` is `rm` with any arguments.
            Some(arguments) if dialect != Dialect::Mainstem => {
                let glob = arguments
                    .strip_suffix(":*")
                    .map_or_else(|| arguments.to_owned(), |rest| format!("{rest} *"));
                names.map(|tool| format!("{tool}({glob})")).collect()
            }
            Some(_) => vec![name.to_owned()],
            None => names.map(str::to_owned).collect(),
        }
    }

    /// Says which names are another product's, and what ours are.
    fn strange_names(&mut self, key: &str, node: &Node, names: &[String]) {
        let said = |name: &String, ours: &[&str]| match ours {
            [] => format!("{name} has no counterpart"),
            ours => format!("{name} is {}", ours.join(" and ")),
        };
        let native = self.dialect == Dialect::Mainstem;
        let strange = names.iter().filter_map(|name| {
            let tool = name.split('(').next().unwrap_or_default();
            let ours = if native { foreign_tool(tool) } else { our_tools(self.dialect, tool) }?;
            (ours != [tool]).then(|| said(name, ours))
        });
        let strange = strange.collect::<Vec<_>>().join(", ");
        if strange.is_empty() {
            return;
        }
        let message = match native {
            true => format!("these are names of Claude Code's tools and mean nothing here: {strange}"),
            false => format!("names of {}'s tools are read as ours: {strange}", self.dialect),
        };
        self.warn(key, node.at, message);
    }
}
