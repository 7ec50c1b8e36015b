//! One finding about declarations, for people and for programs.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use mainstem_model::ResolveError;
use mainstem_spec::{FindingKind, Origin, Position, Severity, SpecError, SpecSet};
use mainstem_subagent::CatalogError;
use serde::{Serialize, Serializer, ser::SerializeStruct};

/// A finding about an agent, a skill, a file or a server. It displays as a line that editors can
/// jump to: file, line, column, severity, message.
///
/// As JSON it has the fields `severity`, `code`, `file`, `line`, `column`, `key`, `message`,
/// `suggestion` and `help`; fields without a value are `null`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    code: Code,
    finding: SpecError,
}

/// What kind of finding a [`Diagnostic`] is. Stable: a program may act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// A file or directory can't be read.
    Unreadable,
    /// A file declares something that is invalid or contradicts itself.
    Invalid,
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
    /// A model is unknown.
    UnknownModel,
    /// A model is known and can't be used on this machine, such as without a key.
    UnusableModel,
    /// A tool is unknown.
    UnknownTool,
    /// A tool is off in this program.
    ToolOff,
    /// A skill is unknown.
    UnknownSkill,
    /// An MCP server is unknown.
    UnknownServer,
    /// A tool can't start its agent.
    AgentTool,
    /// An agent can only spawn, and no agent that it reaches has another tool.
    OnlySpawns,
    /// An agent can't be built for another reason.
    Unbuildable,
    /// A part of a file is not in effect until it is trusted.
    Untrusted,
    /// An MCP server can't be used.
    Server,
    /// A tool of the program takes the place of one with the same name.
    ToolReplaced,
    /// The files can't be used as a whole; all agents stay as they were.
    NotReloaded,
}

impl Diagnostic {
    /// A finding that leaves something out.
    #[must_use]
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self { code, finding: SpecError::error(message) }
    }

    /// A finding about something that is in effect all the same.
    #[must_use]
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self { code, finding: SpecError::warning(message) }
    }

    /// Gives a finding of another crate a code.
    #[must_use]
    pub fn new(code: Code, finding: SpecError) -> Self {
        Self { code, finding }
    }

    /// Describes a problem with an agent, at its place in the agent's file.
    ///
    /// Reads the file again; blocks on the file system.
    #[must_use]
    pub fn about_agent(problem: &CatalogError, specs: &SpecSet) -> Self {
        Self { code: Code::of(problem), finding: problem.finding(specs) }
    }

    /// The kind of finding.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// Whether something is left out, or only suspicious.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.finding.severity
    }

    /// Returns `true` if something is left out.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.finding.is_error()
    }

    /// The file; `None` for a declaration in code.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.finding.path.as_deref()
    }

    /// The place in the file, if it is known.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.finding.position
    }

    /// The line in the file, from 1.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        self.position().map(|at| at.line)
    }

    /// The column in characters, from 1.
    #[must_use]
    pub fn column(&self) -> Option<u32> {
        self.position().map(|at| at.column)
    }

    /// The key in the file, such as `workspace.mode`.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.finding.key.as_deref()
    }

    /// What is wrong. One line, which never holds a header's value.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.finding.message
    }

    /// What was probably meant, if a known name is close.
    #[must_use]
    pub fn suggestion(&self) -> Option<&str> {
        self.finding.suggestion.as_deref()
    }

    /// What to do, where the message alone does not say it.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        self.code.help()
    }

    /// Returns `true` if it is about the file of this origin.
    #[must_use]
    pub fn is_about(&self, origin: &Origin) -> bool {
        self.finding.is_about(origin)
    }

    /// The same finding as a warning.
    #[must_use]
    pub fn as_warning(mut self) -> Self {
        self.finding.severity = Severity::Warning;
        self
    }

    /// The same finding about this file.
    #[must_use]
    pub fn with_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.finding.path = Some(file.into());
        self
    }
}

impl Code {
    /// Its name, as JSON has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Invalid => "invalid",
            Self::UnknownKey => "unknown_key",
            Self::Interpreted => "interpreted",
            Self::Duplicate => "duplicate",
            Self::Superseded => "superseded",
            Self::Reverted => "reverted",
            Self::MissingPrompt => "missing_prompt",
            Self::UnknownModel => "unknown_model",
            Self::UnusableModel => "unusable_model",
            Self::UnknownTool => "unknown_tool",
            Self::ToolOff => "tool_off",
            Self::UnknownSkill => "unknown_skill",
            Self::UnknownServer => "unknown_server",
            Self::AgentTool => "agent_tool",
            Self::OnlySpawns => "only_spawns",
            Self::Unbuildable => "unbuildable",
            Self::Untrusted => "untrusted",
            Self::Server => "server",
            Self::ToolReplaced => "tool_replaced",
            Self::NotReloaded => "not_reloaded",
        }
    }

    fn help(self) -> Option<&'static str> {
        Some(match self {
            Self::Duplicate => "rename one of the two, or remove it",
            Self::Superseded => "correct the file that comes first, or remove it",
            Self::Reverted | Self::NotReloaded => "correct the file; it is read again before the next run",
            Self::UnknownModel => "use a model of a configured provider, or register this name",
            Self::UnusableModel => "set up the provider on this machine",
            Self::OnlySpawns => "give the agent a tool, or let it spawn an agent that has one",
            Self::Untrusted => "read the file, then trust this part of it",
            Self::Server => "correct the server's declaration, or start the server by hand to see its error",
            Self::ToolReplaced => "rename the program's tool to have both",
            _ => return None,
        })
    }

    fn of(problem: &CatalogError) -> Self {
        match problem {
            CatalogError::Model { source: ResolveError::Unknown { .. }, .. } => Self::UnknownModel,
            CatalogError::Model { .. } => Self::UnusableModel,
            CatalogError::UnknownTool { .. } | CatalogError::UnknownArgument { .. } => Self::UnknownTool,
            CatalogError::ToolOff { .. } => Self::ToolOff,
            CatalogError::UnknownSkill { .. } => Self::UnknownSkill,
            CatalogError::UnknownServer { .. } => Self::UnknownServer,
            CatalogError::AgentTool { .. } => Self::AgentTool,
            CatalogError::OnlySpawns { .. } => Self::OnlySpawns,
            _ => Self::Unbuildable,
        }
    }
}

impl From<SpecError> for Diagnostic {
    fn from(finding: SpecError) -> Self {
        let code = match finding.kind {
            FindingKind::Unreadable => Code::Unreadable,
            FindingKind::UnknownKey => Code::UnknownKey,
            FindingKind::Interpreted => Code::Interpreted,
            FindingKind::Duplicate => Code::Duplicate,
            FindingKind::Superseded => Code::Superseded,
            FindingKind::Reverted => Code::Reverted,
            FindingKind::MissingPrompt => Code::MissingPrompt,
            _ => Code::Invalid,
        };
        Self { code, finding }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.finding.fmt(f)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Diagnostic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Diagnostic", 9)?;
        fields.serialize_field("file", &self.file())?;
        fields.serialize_field("line", &self.line())?;
        fields.serialize_field("column", &self.column())?;
        fields.serialize_field("severity", &self.severity().to_string())?;
        fields.serialize_field("code", self.code.name())?;
        fields.serialize_field("key", &self.key())?;
        fields.serialize_field("message", self.message())?;
        fields.serialize_field("suggestion", &self.suggestion())?;
        fields.serialize_field("help", &self.help())?;
        fields.end()
    }
}

#[cfg(test)]
mod tests;
