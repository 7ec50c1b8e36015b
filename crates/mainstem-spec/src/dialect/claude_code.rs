//! Claude Code: <https://code.claude.com/docs/en/sub-agents>

use super::{Foreign, Meaning, Model};

pub(super) const KEYS: [(&str, Meaning); 12] = [
    ("disallowedTools", Meaning::Same("disallowed_tools")),
    ("maxTurns", Meaning::Same("steps")),
    ("permissionMode", Meaning::Read(Foreign::PermissionMode)),
    ("background", Meaning::Read(Foreign::Background)),
    ("mcpServers", Meaning::Same("mcp_servers")),
    ("hooks", Meaning::Ignored(super::NO_HOOKS)),
    ("memory", Meaning::Ignored("agents keep no memory beside their session; see persist_session")),
    ("isolation", Meaning::Ignored("there are no git worktrees; workspace.mode says where an agent works")),
    ("color", Meaning::Ignored(super::NO_COLOR)),
    ("initialPrompt", Meaning::Ignored("an agent starts with the task that it is given")),
    (
        "allowed-tools",
        Meaning::Ignored("that is a key of skills and commands; an agent's tools are in \"tools\""),
    ),
    ("version", Meaning::Ignored("an agent has no version here")),
];

/// Names that follow the latest model of a family.
const ALIASES: [&str; 7] = ["sonnet", "opus", "haiku", "fable", "opusplan", "best", "default"];

pub(super) fn model(name: &str) -> Model {
    let plain = name.split('[').next().unwrap_or_default().to_ascii_lowercase();
    match plain.as_str() {
        alias if ALIASES.contains(&alias) => Model::Parents,
        id if id.starts_with("claude-") => Model::Ours(format!("anthropic:{name}")),
        _ => Model::AsWritten,
    }
}

pub(super) const TOOLS: [(&str, &[&str]); 27] = [
    ("Read", &["read_file"]),
    ("NotebookRead", &["read_file"]),
    ("Write", &["write_file"]),
    ("Edit", &["edit_file"]),
    ("MultiEdit", &["edit_file"]),
    ("NotebookEdit", &["edit_file"]),
    ("Bash", &["shell"]),
    ("PowerShell", &["shell"]),
    ("Grep", &["grep_files"]),
    ("Glob", &["glob_files"]),
    ("LS", &["list_files"]),
    ("Agent", &["agent_spawn", "agent_fanout"]),
    ("Task", &["agent_spawn", "agent_fanout"]),
    ("SendMessage", &["agent_send"]),
    ("TaskOutput", &["task_output"]),
    ("TaskList", &["task_list"]),
    ("TaskStop", &["task_cancel"]),
    ("Skill", &["load_skill"]),
    ("EnterPlanMode", &["plan_enter"]),
    ("ExitPlanMode", &["plan_exit"]),
    ("BashOutput", &[]),
    ("KillShell", &[]),
    ("WebFetch", &[]),
    ("WebSearch", &[]),
    ("TodoWrite", &[]),
    ("AskUserQuestion", &[]),
    ("ToolSearch", &[]),
];
