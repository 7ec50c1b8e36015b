//! Agents' files of other products: the product of a file, and the meaning of its keys.
//!
//! A key means the same in every file; only names of tools and models are read as those of the
//! file's product.

use std::{fmt, path::Path};

use crate::{Key, node::Value, parse::Keyed, suggest::closest};

mod claude_code;
mod codex;
mod copilot;
mod cursor;
mod gemini_cli;
mod goose;
mod open_code;
mod tool;

pub(crate) use tool::{foreign_tool, our_tools, server_tool};

/// The product whose vocabulary a file uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Dialect {
    /// Ours.
    #[default]
    Mainstem,
    /// `.claude/agents/*.md`
    ClaudeCode,
    /// `.opencode/agent/*.md`
    OpenCode,
    /// `.github/agents/*.agent.md`, of GitHub Copilot and VS Code.
    Copilot,
    /// `.gemini/agents/*.md`
    GeminiCli,
    /// `.cursor/agents/*.md`
    Cursor,
    /// `.codex/agents/*.toml`
    Codex,
    /// `.goose/agents/*.md` and `.agents/agents/*.md`
    Goose,
}

/// What another product's key means here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// It is another name for a key of ours.
    Same(&'static str),
    /// Its value is translated.
    Read(Foreign),
    /// It is ignored, for this reason.
    Ignored(&'static str),
}

/// A key that has no counterpart, and whose value has a meaning here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Foreign {
    Agents,
    Background,
    Disabled,
    Infer,
    Kind,
    ModelInvocation,
    Permission,
    PermissionMode,
    Prompt,
    ReadOnly,
    Sandbox,
    UserInvocable,
}

const NO_HOOKS: &str = "hooks aren't run, so what they forbid is not forbidden; use permissions";
const NO_COLOR: &str = "nothing shows an agent's colour";
const NO_OPTIONS: &str = "options of a provider are set with the model";

type Table = &'static [(&'static str, Meaning)];

impl Dialect {
    const OTHERS: [Self; 7] = [
        Self::ClaudeCode,
        Self::OpenCode,
        Self::Copilot,
        Self::GeminiCli,
        Self::Cursor,
        Self::Codex,
        Self::Goose,
    ];

    /// Returns the product of a file: by its path, or else by the keys that only one product has.
    pub(crate) fn of(path: &Path, keys: &[Keyed<'_>]) -> Self {
        Self::of_path(path).unwrap_or_else(|| Self::of_keys(keys))
    }

    /// Returns the product of a path such as `.claude/agents/reviewer.md`.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        if path.file_name()?.to_string_lossy().ends_with(".agent.md") {
            return Some(Self::Copilot);
        }
        let named = |dir: &Path| Some(dir.file_name()?.to_string_lossy().into_owned());
        path.ancestors().skip(1).find_map(|dir| {
            match (named(dir.parent()?)?.as_str(), named(dir)?.as_str()) {
                (".claude", "agents") => Some(Self::ClaudeCode),
                (".opencode" | "opencode", "agent" | "agents") => Some(Self::OpenCode),
                (".github", "agents") => Some(Self::Copilot),
                (".gemini", "agents") => Some(Self::GeminiCli),
                (".cursor", "agents") => Some(Self::Cursor),
                (".codex", "agents") => Some(Self::Codex),
                (".goose" | ".agents" | "goose", "agents") => Some(Self::Goose),
                _ => None,
            }
        })
    }

    fn of_keys(keys: &[Keyed<'_>]) -> Self {
        let is_only_ours = |name: &str| Key::all().any(|key| key.only_ours.contains(&name));
        if keys.iter().any(|(key, _)| is_only_ours(key)) {
            return Self::Mainstem;
        }
        let is_own = |dialect: Self, (key, entry): &Keyed<'_>| {
            let flags = key == "tools" && matches!(entry.node.value, Value::Map(_));
            if flags { dialect == Self::OpenCode } else { dialect.is_only_one_with(key) }
        };
        let own = |dialect| keys.iter().filter(|key| is_own(dialect, key)).count();
        let mut counts = Self::OTHERS.map(|dialect| (own(dialect), dialect));
        counts.sort_by_key(|(count, _)| *count);
        match counts {
            [.., (second, _), (most, dialect)] if most > second => dialect,
            _ => Self::Mainstem,
        }
    }

    fn is_only_one_with(self, key: &str) -> bool {
        let has = |dialect: Self| dialect.lookup(key).is_some();
        has(self) && !is_ours(key) && Self::OTHERS.into_iter().filter(|other| has(*other)).count() == 1
    }

    /// Returns the meaning of a key of another product, and that product.
    pub(crate) fn meaning(self, key: &str) -> Option<(Self, Meaning)> {
        let of = |dialect: Self| Some((dialect, dialect.lookup(key)?));
        of(self).or_else(|| match is_ours(key) {
            true => None,
            false => Self::OTHERS.into_iter().find_map(of),
        })
    }

    /// Returns every key that a file of this product may have.
    pub(crate) fn vocabulary(self) -> impl Iterator<Item = &'static str> {
        Key::vocabulary().chain(self.table().iter().map(|(key, _)| *key))
    }

    /// Returns `true` if any product has such a key, or one with a similar name.
    pub(crate) fn is_like_a_key(word: &str) -> bool {
        let products = || [Self::Mainstem].into_iter().chain(Self::OTHERS);
        products().any(|product| product.vocabulary().any(|key| key == word))
            || products().any(|product| closest(word, product.vocabulary()).is_some())
    }

    fn lookup(self, key: &str) -> Option<Meaning> {
        self.table().iter().find(|(name, _)| *name == key).map(|(_, meaning)| *meaning)
    }

    fn table(self) -> Table {
        match self {
            Self::Mainstem => &[],
            Self::ClaudeCode => &claude_code::KEYS,
            Self::OpenCode => &open_code::KEYS,
            Self::Copilot => &copilot::KEYS,
            Self::GeminiCli => &gemini_cli::KEYS,
            Self::Cursor => &cursor::KEYS,
            Self::Codex => &codex::KEYS,
            Self::Goose => &[],
        }
    }

    /// Returns the meaning of a model's name.
    pub(crate) fn model(self, name: &str) -> Model {
        match self {
            _ if name == "inherit" => Model::Parents,
            Self::Mainstem | Self::Codex => Model::AsWritten,
            Self::ClaudeCode => claude_code::model(name),
            Self::OpenCode => open_code::model(name),
            Self::Copilot => copilot::model(name),
            Self::GeminiCli => gemini_cli::model(name),
            Self::Cursor => cursor::model(name),
            Self::Goose => goose::model(name),
        }
    }
}

/// Returns `true` if the key is one of ours.
fn is_ours(key: &str) -> bool {
    Key::vocabulary().any(|name| name == key)
}

/// The meaning of a model's name in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Model {
    AsWritten,
    /// The parent's: the name has no meaning outside the product.
    Parents,
    /// This one of ours.
    Ours(String),
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mainstem => "Mainstem",
            Self::ClaudeCode => "Claude Code",
            Self::OpenCode => "OpenCode",
            Self::Copilot => "Copilot",
            Self::GeminiCli => "Gemini CLI",
            Self::Cursor => "Cursor",
            Self::Codex => "Codex",
            Self::Goose => "goose",
        })
    }
}

#[cfg(test)]
mod tests;
