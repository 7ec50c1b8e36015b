//! Agents as markdown files; the only crate that sees YAML.
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
//!   "shell(git diff*)": allow
//!   shell: ask
//! ---
//! You review code. Be brief.
//! ```
//!
//! | item | does |
//! |---|---|
//! | [`AgentSpec`] | the declaration, whether read or built in code |
//! | [`parse`] | one file's text to a spec and its warnings, or to everything that is wrong with it |
//! | [`load_dir`] | a directory to a [`SpecSet`] and every [`SpecError`] on the way |
//! | [`SpecSet`] | specs by id; the program's win over files, files over built-in ones |
//! | [`SpecError`] | what is wrong, at which line and column, and what was probably meant |
//!
//! # Keys
//! | key | value | default |
//! |---|---|---|
//! | `description` | text, required | |
//! | `name` | the file name again; anything else is a warning | |
//! | `model` | `provider:model`, or a registered name | the parent's |
//! | `steps`, also `max_iters`, `maxTurns` | whole number from 1 | 10 |
//! | `temperature`, `top_p` | number in 0–2, in 0–1 | the parent's |
//! | `tools`, `skills` | list, or text with commas | all of the parent's |
//! | `disallowed_tools` | the same | none |
//! | `hidden`, `persist_session` | `true` or `false` | `false` |
//! | `mode` | `primary`, `subagent`, `all` | `all` |
//! | `workspace.mode` | `isolated`, `shared`; nested or with the dot | `isolated` |
//! | `workspace.path` | path inside the workspace; the body is then ignored | |
//! | `url` | `http(s)://…` of a remote agent; the body is then ignored | |
//! | `headers` | name: value, where a value may hold `${ENV_VAR}` | none |
//! | `permissions` | pattern: `allow`, `ask` or `deny`; or `deny: [pattern, …]` | none |
//! | `timeout_seconds`, `max_tokens_total` | whole number from 0, from 1 | |
//! | `output_schema` | a JSON schema, written in YAML | |
//!
//! Any other key is a warning, so that a file written for a newer version still loads. A value that
//! can't be read is an error, so that no agent runs under other rules than its file says.

mod dialect;
mod error;
mod front_matter;
mod load;
mod node;
mod parse;
mod repair;
mod rules;
mod set;
mod sources;
mod spec;
mod suggest;
mod watch;
mod yaml;

pub use dialect::Dialect;
pub use error::{Position, Severity, SpecError};
pub use load::{MAX_FILE_BYTES, load_dir, load_file};
pub use parse::{Parsed, parse};
pub use set::{Changes, SpecSet};
pub use sources::Sources;
pub use spec::{AgentSpec, DEFAULT_STEPS, Header, Mode, Origin, Permission, Workspace, WorkspaceMode};
pub use watch::Watch;
