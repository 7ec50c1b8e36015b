#![doc = include_str!("../README.md")]
//!
//! One file declares one agent: YAML between two `---` lines, then the prompt. The file name is
//! the agent's id.
//!
//! ```text
//! ---
//! description: Reviews a change and lists what is wrong with it
//! model: openai:gpt-4o
//! steps: 20
//! temperature: 0.2
//! tools: [read_file, grep]
//! permissions:
//!   "shell(git push*)": deny
//!   shell: ask
//! ---
//! You review code. Be brief.
//! ```
//!
//! | item | does |
//! |---|---|
//! | [`AgentSpec`] | the declaration, whether read or built in code |
//! | [`parse`] | one file's text to a spec and its warnings, or to all its errors |
//! | [`load_dir`], [`load_file`] | a directory to a [`SpecSet`] and its [`SpecError`]s; one file |
//! | [`create_file`] | a new file, never over another |
//! | [`load_prompts`] | the prompts that directories bring, into a [`SpecSet`] |
//! | [`Sources`] | several directories, the more important ones first |
//! | [`Watch`] | tells whether their files have changed, without reading them |
//! | [`Skill`], [`parse_skill`], [`load_skills`] | instructions that a model can load |
//! | [`SkillSet`] | skills by name, with the same precedence |
//! | [`SpecSet`] | specs by id; the program's win over files, files over built-in ones |
//! | [`Key`] | a key of a file: its names, its values, what it is for |
//! | [`SpecError`] | what is wrong, at which line and column, and what was probably meant |
//!
//! # Keys
#![doc = include_str!("../KEYS.md")]
//!
//! Any other key is a warning, so that a file written for a newer version still loads. A value that
//! can't be read is an error, so that no agent runs under other rules than its file says.
//!
//! # Files of other products
//! Files of Claude Code, OpenCode, Copilot, Gemini CLI, Cursor, Codex (TOML) and goose are read,
//! too. The [`Dialect`] of a file follows from its path (`.claude/agents`, `.codex/agents`,
//! `*.agent.md` …), or else from the keys that only one product has. A key means the same in every
//! dialect; names of tools and models are those of the dialect. A value that is translated or
//! ignored is a warning. A refusal applies to the product's name of a tool and to ours; it may
//! become broader, never narrower.
//!
//! # Almost YAML
//! A description with a colon, with escapes or over several lines that aren't indented; text that
//! begins with `*`, `@`, `%`, a backtick or `[x]`; quotes in quotes; tabs: read if the meaning is
//! plain, with a warning that shows the corrected line.

mod create;
mod dialect;
mod effort;
mod error;
mod front_matter;
mod key;
mod load;
mod node;
mod parse;
mod repair;
mod rules;
mod server_tool;
mod set;
mod skill;
mod skills;
mod sources;
mod spec;
mod suggest;
mod toml;
mod watch;
mod yaml;

pub use create::{CreateError, create_file};
pub use dialect::Dialect;
pub use effort::Effort;
pub use error::{FindingKind, Position, Severity, SpecError};
pub use key::Key;
pub use load::{MAX_FILE_BYTES, load_dir, load_file, load_prompts, locate};
pub use parse::{Parsed, parse};
pub use rules::is_name;
pub use server_tool::ServerTool;
pub use set::{Changes, SpecSet};
pub use skill::{Skill, parse_skill};
pub use skills::{SkillSet, load_skills};
pub use sources::Sources;
pub use spec::{
    AgentSpec, DEFAULT_STEPS, Header, McpServer, Mode, OnLost, Origin, Permission, Protocol, Workspace,
    WorkspaceMode,
};
pub use suggest::closest;
pub use watch::Watch;
