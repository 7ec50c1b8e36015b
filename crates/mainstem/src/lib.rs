#![doc = include_str!("../README.md")]
//!
//! This crate composes the layers and re-exports them. A program that needs one layer depends on
//! that layer alone:
//!
//! * [`message`]: messages, ids, usage
//! * [`event`]: events, session logs, cursors, folds
//! * [`model`]: the contract of language models, decorators, the registry
//! * [`tool`]: the contract of tools
//! * [`workspace`]: directories and tools for their files
//! * [`spec`]: agents and skills as files; [`declarations`]: their reload and diagnostics
//! * [`react`]: the reason-act loop
//! * [`subagent`]: agents that call agents
//! * [`remote`]: agents on other machines
//! * [`session`]: sessions, runs, handles
//! * [`encode`]: events as server-sent events and NDJSON

mod env;
mod error;
mod harness;
pub mod provider;
#[cfg(feature = "session-files")]
mod stored_files;

pub use env::{model_from_env, registry_from_env};
pub use error::{BuildError, Error};
#[cfg(feature = "mcp")]
pub use harness::HarnessAgents;
pub use harness::{Harness, HarnessBuilder};
#[cfg(feature = "anthropic")]
pub use mainstem_anthropic as anthropic;
pub use mainstem_api as api;
#[cfg(feature = "client")]
pub use mainstem_client as client;
pub use mainstem_declarations as declarations;
pub use mainstem_encode as encode;
pub use mainstem_event as event;
#[cfg(feature = "gemini")]
pub use mainstem_gemini as gemini;
#[cfg(feature = "files")]
pub use mainstem_guard as guard;
#[cfg(feature = "http")]
pub use mainstem_http as http;
pub use mainstem_journal as journal;
#[cfg(feature = "mcp")]
pub use mainstem_mcp as mcp;
pub use mainstem_message as message;
pub use mainstem_model as model;
#[cfg(feature = "ollama")]
pub use mainstem_ollama as ollama;
#[cfg(feature = "openai")]
pub use mainstem_openai as openai;
pub use mainstem_policy as policy;
pub use mainstem_react as react;
#[cfg(feature = "remote")]
pub use mainstem_remote as remote;
pub use mainstem_schema as schema;
pub use mainstem_session as session;
pub use mainstem_spec as spec;
pub use mainstem_subagent as subagent;
pub use mainstem_task as task;
pub use mainstem_tool as tool;
#[cfg(feature = "files")]
pub use mainstem_workspace as workspace;
#[cfg(feature = "session-files")]
pub use stored_files::StoredFiles;
// What most programs use besides, so that they need not depend on these crates themselves.
pub use mainstem_react::{futures_util, schemars, serde, serde_json};

/// What most programs use.
pub mod prelude {
    pub use futures_util::StreamExt as _;
    #[cfg(feature = "anthropic")]
    pub use mainstem_anthropic::Anthropic;
    pub use mainstem_event::{
        AgentEvent, CancelReason, EventKind, EventStreamExt as _, FleetState, Outcome, SendMode,
        StreamOptions,
    };
    #[cfg(feature = "gemini")]
    pub use mainstem_gemini::Gemini;
    pub use mainstem_message::{Message, Role};
    pub use mainstem_model::{Model, ModelRegistry, ScriptedModel, scripted::Turn};
    #[cfg(feature = "ollama")]
    pub use mainstem_ollama::{Ollama, OllamaExt as _};
    #[cfg(feature = "openai")]
    pub use mainstem_openai::{OpenAi, OpenAiExt as _, OpenAiResponses};
    pub use mainstem_policy::{Budget, Effect, RuleSet};
    pub use mainstem_react::{Agent, Middleware, OutputSchema, RunContext};
    pub use mainstem_session::{
        Background, Decision, NothingToResume, OnTaskFinished, Run, RunActive, RunError, RunHandle,
        RunOptions, RunRequest, RunStatus, Session,
    };
    pub use mainstem_spec::{AgentSpec, Skill};
    pub use mainstem_subagent::{AgentTool, ExternalTool, IntoTool as _};
    pub use mainstem_tool::{Json, Tool, ToolContext, ToolError, ToolOutput, async_trait, tool_fn};
    #[cfg(all(feature = "files", unix))]
    pub use mainstem_workspace::ShellOptions;

    pub use crate::{Harness, HarnessBuilder};
}

/// The code of README and book is compiled and run.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/book/src/agents.md")]
    struct Agents;

    #[doc = include_str!("../../../docs/book/src/background.md")]
    struct Background;

    #[doc = include_str!("../../../docs/book/src/clients.md")]
    struct Clients;

    #[doc = include_str!("../../../docs/book/src/files.md")]
    struct Files;

    #[doc = include_str!("../../../docs/book/src/models.md")]
    struct Models;

    #[doc = include_str!("../../../docs/book/src/permissions.md")]
    struct Permissions;

    #[doc = include_str!("../../../docs/book/src/stream.md")]
    struct Stream;

    #[doc = include_str!("../../../docs/book/src/testing.md")]
    struct Testing;

    #[doc = include_str!("../../../docs/book/src/tools.md")]
    struct Tools;
}
