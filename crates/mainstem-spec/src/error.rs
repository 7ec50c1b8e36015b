//! What is wrong with a declaration, and where.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::Origin;

/// One finding about one declaration. It displays as a line that editors can jump to:
///
/// ```
/// use std::path::Path;
///
/// let text = "---\ndescription: Reviews code\ntemperture: 0.2\n---\n";
/// let path = Path::new("subagents/reviewer.md");
/// let parsed = mainstem_spec::parse("reviewer", text, path).unwrap();
/// assert_eq!(
///     parsed.warnings[0].to_string(),
///     "subagents/reviewer.md:3:1: warning: \
///      unknown key \"temperture\"; did you mean \"temperature\"?",
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{severity}: {message}{}", place(.path, .position), question(.suggestion))]
#[non_exhaustive]
pub struct SpecError {
    /// Whether the spec can't be used.
    pub severity: Severity,
    /// The kind of the finding.
    pub kind: FindingKind,
    /// The file, or `None` for a spec that was built in code.
    pub path: Option<PathBuf>,
    /// Where in the file, if it is about one place.
    pub position: Option<Position>,
    /// The key it is about, such as `workspace.mode`.
    pub key: Option<String>,
    /// What is wrong and what would be right; never a header's value.
    pub message: String,
    /// A similar word that is known, if there is one.
    pub suggestion: Option<String>,
}

/// The severity of a [`SpecError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a spec either loads or it doesn't")]
pub enum Severity {
    /// The spec is usable.
    Warning,
    /// The spec is left out.
    Error,
}

/// The kind of a [`SpecError`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// A value is invalid, or two contradict each other.
    #[default]
    Invalid,
    /// A file or directory can't be read.
    Unreadable,
    /// A key is unknown and ignored.
    UnknownKey,
    /// A key or value is interpreted in another way than it is written, or ignored.
    Interpreted,
    /// Two declarations have the same name; one replaces the other.
    Duplicate,
    /// A declaration is left out because a more important file of its name has errors.
    Superseded,
    /// A declaration stays as it was before its file had errors.
    Reverted,
    /// A text for a prompt is missing.
    MissingPrompt,
}

/// A place in a file: lines and columns from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Position {
    /// The line, counted from the start of the file.
    pub line: u32,
    /// The column in that line.
    pub column: u32,
}

impl SpecError {
    /// Returns `true` if the spec can't be used.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Returns `true` if the error is about the file of this origin.
    #[must_use]
    pub fn is_about(&self, origin: &Origin) -> bool {
        matches!(origin, Origin::File(path) if self.path.as_ref() == Some(path))
    }

    /// Creates a finding about a spec that can't be used, without a place. A check beyond this
    /// crate, such as whether a model exists, reports in the same form.
    #[must_use]
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            kind: FindingKind::default(),
            path: None,
            position: None,
            key: None,
            // What a file says may be in it; one finding is one line, and moves no cursor.
            message: message.into().replace(char::is_control, " "),
            suggestion: None,
        }
    }

    /// Creates a finding about a spec that can be used.
    #[must_use]
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(message) }
    }

    /// Sets the file.
    #[must_use]
    pub fn in_file(self, path: &Path) -> Self {
        Self { path: Some(path.to_owned()), ..self }
    }

    /// Sets the key.
    #[must_use]
    pub fn about(self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self }
    }

    /// Sets a similar word that is known.
    #[must_use]
    pub fn with_suggestion(self, suggestion: Option<&str>) -> Self {
        Self { suggestion: suggestion.map(str::to_owned), ..self }
    }

    pub(crate) fn of_kind(self, kind: FindingKind) -> Self {
        Self { kind, ..self }
    }

    pub(crate) fn at(self, position: Position) -> Self {
        Self { position: Some(position), ..self }
    }

    /// Creates an error about two keys that exclude each other.
    pub(crate) fn conflict(one: &str, other: &str) -> Self {
        Self::error(format!("{one} and {other} exclude one another: keep one of them")).about(one)
    }
}

impl Position {
    pub(crate) const START: Self = Self { line: 1, column: 1 };

    /// Returns the position of the end of `text`.
    pub(crate) fn after(text: &str) -> Self {
        let last = text.rsplit('\n').next().unwrap_or_default();
        Self::new(text.matches('\n').count() as u64 + 1, last.chars().count() as u64 + 1)
    }

    pub(crate) fn new(line: u64, column: u64) -> Self {
        let bounded = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Self { line: bounded(line), column: bounded(column) }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

fn place(path: &Option<PathBuf>, position: &Option<Position>) -> String {
    let path = path.iter().map(|path| format!("{}:", shown(path)));
    let position = position.iter().map(|position| format!("{position}:"));
    path.chain(position).chain([" ".to_owned()]).collect::<String>().trim_start().to_owned()
}

/// Returns a path as one line, also if a file name has line breaks.
fn shown(path: &Path) -> String {
    let is_unsafe = |c: char| {
        c.is_control()
            || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
    };
    let escaped = |c: char| if is_unsafe(c) { c.escape_default().to_string() } else { c.to_string() };
    path.display().to_string().chars().map(escaped).collect()
}

fn question(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default()
}
