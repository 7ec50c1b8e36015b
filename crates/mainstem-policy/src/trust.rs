//! Parts of a folder's files that take effect only after a person trusts them.

use std::fmt;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A part of a file that needs trust, because it starts a process, reads an environment variable,
/// sends a key to another address, or widens a right.
///
/// A part is trusted by its [`hash`](Self::hash), which covers only this part of the file, so that
/// an edit elsewhere does not matter. Comments, the order of keys and the spelling of values are
/// not part of it.
///
/// ```
/// use mainstem_policy::Part;
/// use serde_json::json;
///
/// let part = |command| {
///     let part = Part::new("mainstem.toml", "mcp.docs", json!({ "command": command }));
///     part.doing(format!("starts `{command}`"))
/// };
/// assert_eq!(part("npx").hash(), part("npx").hash());
/// assert_ne!(part("npx").hash(), part("npm").hash());
/// assert_eq!(part("npx").to_string(), "mainstem.toml: starts `npx`");
/// ```
#[derive(Clone, PartialEq)]
pub struct Part {
    file: String,
    key: String,
    content: Value,
    does: Vec<String>,
}

impl Part {
    /// Creates a part of a file from the file's path in its folder, the key of the part, and its
    /// content. Numbers, texts and keys are compared as values.
    pub fn new(file: impl Into<String>, key: impl Into<String>, content: Value) -> Self {
        Self { file: file.into(), key: key.into(), content, does: Vec::new() }
    }

    /// Adds an effect, for display: a third-person verb and the rest of the sentence.
    #[must_use]
    pub fn doing(mut self, what: impl AsRef<str>) -> Self {
        self.does.push(one_line(what.as_ref()));
        self
    }

    /// Returns the file, by its path in its folder.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns where it is in the file.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns its effects, for display.
    pub fn does(&self) -> &[String] {
        &self.does
    }

    /// Returns a line for each effect of the part, with its file.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let file = one_line(&self.file);
        self.does.iter().map(move |does| format!("{file}: {does}"))
    }

    /// Returns the SHA-256 of file, key and content, as 64 hexadecimal digits.
    pub fn hash(&self) -> String {
        let mut content = self.content.clone();
        content.sort_all_objects();
        let canonical = json!([self.file, self.key, content]).to_string();
        Sha256::digest(canonical).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns the names of the environment variables that a text has as `${NAME}` or
/// `${NAME:-default}`, in order.
pub fn variables(text: &str) -> impl Iterator<Item = &str> {
    let pieces = text.split("${").skip(1).filter_map(|piece| piece.split_once('}'));
    pieces.map(|(name, _)| name.split_once(":-").map_or(name, |(name, _)| name))
}

/// Returns the text as one line, with control characters and changes of the reading direction
/// escaped, so that it can't pose as other text.
pub fn one_line(text: &str) -> String {
    let breaks = |c: char| matches!(c, '\u{2028}' | '\u{2029}');
    let turns = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let shown = |c: char| match c {
        c if c.is_control() || breaks(c) || turns(c) => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", one_line(&self.file), self.does.join(", "))
    }
}

impl fmt::Debug for Part {
    /// Without the content, which may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("file", &self.file).field("key", &self.key).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
