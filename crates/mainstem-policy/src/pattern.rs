//! Patterns of tool calls.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{glob, target};

mod parse;

pub use parse::PatternError;

/// A pattern for tool calls, by the tool and its arguments.
///
/// ```text
/// pattern = tool [ "(" [ field ": " ] glob ")" ]
/// tool    = a glob without blanks and parentheses     write_file   mcp__*   *
/// field   = a name, or a JSON pointer (RFC 6901) in which * is every element
/// glob    = * for any text, ? for one character, all else for itself
/// ```
///
/// | pattern | is about |
/// |---|---|
/// | `write_file` | every call of `write_file` |
/// | `mcp__*` | every call of a tool whose name begins so |
/// | `shell(git *)` | `git` with any arguments, or without |
/// | `write_file(path: src/**)` | paths below `src` |
/// | `agent_spawn(agent_id: reviewer)` | spawns of `reviewer` |
/// | `agent_fanout(/spawns/*/agent_id: reviewer)` | the same in a list |
/// | `fetch(https://docs.rs/*)` | addresses on one server |
///
/// The blank after `field:` belongs to it. A glob without a field is about what the call acts on:
/// its `command`, `cmd`, `path`, `file_path`, `url` and `agent_id`; where it has none of these, its
/// `pattern` and `query`; else all of its arguments as JSON without blanks and with sorted keys. A
/// rule that refuses looks at all of these, and at whatever is read as a command, a path or an
/// address by its name. `tool(*)` is `tool`.
///
/// How a value is read follows from the end of its field's name:
///
/// * `command`, `cmd`, `script`: shell text; a list is joined to one
/// * `path`, `file`, `filename`, `dir`, `directory`, `folder`, `cwd`: a path: `*` within one
///   segment, `**` across them
/// * `url`, `uri`: an address: `*` does not cross from the server to what follows
/// * all else: text
///
/// # Two questions
/// A rule that allows uses [`covers`](Self::covers): does *all* of the call *certainly* match? A
/// rule that refuses uses [`touches`](Self::touches): might *any* of it match? They differ where
/// text can hide a value.
///
/// * `a; b`, `a && b`, `a | b`, two lines: covers: both must fit; touches: one is enough
/// * `$(…)`, backticks, redirections, groups, comments, backslashes, open quotes: covers: never;
///   touches: what is inside counts, quoted or not; so does a later word after `sudo`, `env`, `sh
///   -c`, `X=1` …
/// * a path with `..`: covers: never; touches: resolved, and found from any directory
/// * absolute path, relative glob: covers: never; touches: if its end fits
/// * case of paths: covers: as written; touches: ignored
/// * address with `user@`: covers: never; touches: without it
/// * a list: covers: every element; touches: any element
/// * a field that is missing: covers: never; touches: never
///
/// Text does not determine everything that a command does: a rule that must hold under attack needs
/// a sandbox behind it.
///
/// ```
/// use mainstem_policy::Pattern;
/// use serde_json::json;
///
/// let git: Pattern = "shell(git *)".parse()?;
/// assert!(git.covers("shell", &json!({"command": "git status"})));
/// assert!(!git.covers("shell", &json!({"command": "git status; rm -rf /"})));
/// assert!(git.touches("shell", &json!({"command": "ls; sudo git push"})));
/// # Ok::<_, mainstem_policy::PatternError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Pattern {
    tool: String,
    arguments: Option<Arguments>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Arguments {
    field: Option<String>,
    glob: String,
}

impl Pattern {
    /// Returns the argument that the pattern looks at: the name, or the first name of the pointer;
    /// `None` if it names none, every element of a list, or a name with an escape.
    #[must_use]
    pub fn argument(&self) -> Option<&str> {
        let field = self.arguments.as_ref()?.field.as_deref()?;
        let name = field.strip_prefix('/').map_or(field, |path| path.split('/').next().unwrap_or(path));
        (name != "*" && !name.contains('~')).then_some(name)
    }

    /// Returns `true` if all of this call certainly matches: the question of rules that allow.
    #[must_use]
    pub fn covers(&self, tool: &str, arguments: &Value) -> bool {
        let Some((wanted, field)) = self.of_tool(tool) else { return false };
        let Some(wanted) = wanted else { return true };
        let targets =
            field.map_or_else(|| target::principal(arguments), |field| target::at(field, arguments));
        !targets.is_empty() && targets.iter().all(|target| target.covered_by(wanted))
    }

    /// Returns `true` if the whole call matches, and the pattern names its path: its glob does not
    /// begin with a wildcard. `write_file` and `write_file(**)` do not name a path,
    /// `write_file(path: docs/**)` does.
    #[must_use]
    pub fn names(&self, tool: &str, arguments: &Value) -> bool {
        let glob = self.arguments.as_ref().map(|arguments| arguments.glob.trim_start_matches(['.', '/']));
        glob.is_some_and(|glob| !glob.starts_with(['*', '?'])) && self.covers(tool, arguments)
    }

    /// Returns the path that the pattern opens by name to a tool, with everything below it: `docs`
    /// for `shell(path: docs/**)` and `shell(path: docs)`. `None` if the pattern is about another
    /// tool or argument, has other wildcards, or leads out of the workspace.
    #[must_use]
    pub fn named_path(&self, tool: &str) -> Option<&str> {
        let arguments = self.arguments.as_ref().filter(|said| said.field.as_deref() == Some("path"))?;
        let path = arguments.glob.strip_suffix("/**").unwrap_or(&arguments.glob);
        let path = path.trim_start_matches("./").trim_end_matches('/');
        let is_plain = !path.is_empty() && !path.contains(['*', '?', '\\']) && !path.starts_with(['/', '~']);
        let is_inside = path.split('/').all(|name| !matches!(name, "" | "." | ".."));
        (is_plain && is_inside && self.is_about_tool(tool)).then_some(path)
    }

    /// Returns `true` if any of this call might match: the question of rules that ask or deny.
    #[must_use]
    pub fn touches(&self, tool: &str, arguments: &Value) -> bool {
        let Some((wanted, field)) = self.of_tool(tool) else { return false };
        let Some(wanted) = wanted else { return true };
        let targets = field.map_or_else(|| target::possible(arguments), |field| target::at(field, arguments));
        targets.iter().any(|target| target.touched_by(wanted))
    }

    /// Returns the name of its tool, which may have wildcards.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns `true` if it is about every call of this tool, with any arguments.
    #[must_use]
    pub fn is_about_all_of(&self, tool: &str) -> bool {
        self.arguments.is_none() && self.is_about_tool(tool)
    }

    /// Returns `true` if it may be about some call of this tool.
    #[must_use]
    pub fn is_about_tool(&self, tool: &str) -> bool {
        glob::matches(&self.tool, tool)
    }

    /// Returns the glob for the arguments and the field, as far as it has them; `None` for another
    /// tool.
    fn of_tool(&self, tool: &str) -> Option<(Option<&str>, Option<&str>)> {
        let arguments = self.arguments.as_ref();
        let wanted = arguments.map(|arguments| arguments.glob.as_str());
        let field = arguments.and_then(|arguments| arguments.field.as_deref());
        self.is_about_tool(tool).then_some((wanted, field))
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        parse::pattern(text)
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tool)?;
        match &self.arguments {
            None => Ok(()),
            Some(Arguments { field: None, glob }) => write!(f, "({glob})"),
            Some(Arguments { field: Some(field), glob }) => write!(f, "({field}: {glob})"),
        }
    }
}

#[cfg(test)]
mod tests;
