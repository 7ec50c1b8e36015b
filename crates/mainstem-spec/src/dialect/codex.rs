//! Codex, whose files are TOML: <https://developers.openai.com/codex/subagents>

use super::{Foreign, Meaning};

const NO_SETTINGS: &str = "it is a setting of Codex";

pub(super) const KEYS: [(&str, Meaning); 11] = [
    ("developer_instructions", Meaning::Read(Foreign::Prompt)),
    ("model_reasoning_effort", Meaning::Same("effort")),
    ("sandbox_mode", Meaning::Read(Foreign::Sandbox)),
    ("nickname_candidates", Meaning::Ignored("an agent is shown by its id and its label")),
    ("web_search", Meaning::Ignored("there is no such tool; an MCP server can have one")),
    ("skills", Meaning::Ignored("it switches skills of Codex; those of an agent here are a list of names")),
    ("model_provider", Meaning::Ignored("a model is named provider:model")),
    ("model_reasoning_summary", Meaning::Ignored(super::NO_OPTIONS)),
    ("model_verbosity", Meaning::Ignored(super::NO_OPTIONS)),
    ("approval_policy", Meaning::Ignored("permissions say which calls are asked about")),
    ("tools", Meaning::Ignored(NO_SETTINGS)),
];
