//! Gemini CLI:
//! <https://github.com/google-gemini/gemini-cli/blob/main/docs/core/subagents.md> and
//! <https://github.com/google-gemini/gemini-cli/blob/main/docs/core/remote-agents.md>

use super::{Foreign, Meaning, Model};

pub(super) const KEYS: [(&str, Meaning); 8] = [
    ("kind", Meaning::Read(Foreign::Kind)),
    ("max_turns", Meaning::Same("steps")),
    (
        "timeout_mins",
        Meaning::Ignored(
            "an agent has no time limit of its own; timeout_seconds is how long its parent waits",
        ),
    ),
    ("mcpServers", Meaning::Same("mcp_servers")),
    ("display_name", Meaning::Ignored("an agent is shown by its id and its label")),
    ("agent_card_url", Meaning::Same("url")),
    (
        "agent_card_json",
        Meaning::Ignored("the card is read from the agent's server; give its address as url"),
    ),
    ("auth", Meaning::Ignored("a secret is a ${VARIABLE} in headers")),
];

/// Names that follow the latest model of a kind.
const ALIASES: [&str; 5] = ["auto", "pro", "flash", "flash-lite", "default"];

pub(super) fn model(name: &str) -> Model {
    if ALIASES.contains(&name) { Model::Parents } else { Model::AsWritten }
}

pub(super) const TOOLS: [(&str, &[&str]); 18] = [
    ("read_file", &["read_file"]),
    ("read_many_files", &["read_file"]),
    ("write_file", &["write_file"]),
    ("replace", &["edit_file"]),
    ("run_shell_command", &["shell"]),
    ("grep_search", &["grep_files"]),
    ("search_file_content", &["grep_files"]),
    ("glob", &["glob_files"]),
    ("list_directory", &["list_files"]),
    ("activate_skill", &["load_skill"]),
    ("enter_plan_mode", &["plan_enter"]),
    ("exit_plan_mode", &["plan_exit"]),
    ("google_web_search", &[]),
    ("web_fetch", &[]),
    ("save_memory", &[]),
    ("write_todos", &[]),
    ("ask_user", &[]),
    ("get_internal_docs", &[]),
];
