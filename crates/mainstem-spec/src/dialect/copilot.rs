//! GitHub Copilot and VS Code:
//! <https://docs.github.com/copilot/reference/custom-agents-configuration> and
//! <https://code.visualstudio.com/docs/agents/reference/custom-agent-file-reference>

use super::{Foreign, Meaning, Model};

pub(super) const KEYS: [(&str, Meaning); 12] = [
    ("disable-model-invocation", Meaning::Read(Foreign::ModelInvocation)),
    ("infer", Meaning::Read(Foreign::Infer)),
    ("user-invocable", Meaning::Read(Foreign::UserInvocable)),
    // An early spelling.
    ("user-invokable", Meaning::Read(Foreign::UserInvocable)),
    ("agents", Meaning::Read(Foreign::Agents)),
    ("target", Meaning::Ignored("the agent is read whatever it is meant for")),
    ("argument-hint", Meaning::Ignored("there is no input field to show it in")),
    ("handoffs", Meaning::Ignored("an agent hands over by agent_spawn; tell it so in the prompt")),
    ("mcp-servers", Meaning::Same("mcp_servers")),
    ("metadata", Meaning::Ignored("nothing reads it")),
    ("hooks", Meaning::Ignored(super::NO_HOOKS)),
    ("github", Meaning::Ignored("it sets rights on GitHub, where this agent doesn't run")),
];

/// Names are those of a menu, such as `Claude Sonnet 4.5 (copilot)`.
pub(super) fn model(name: &str) -> Model {
    let ours = name.contains(':') && !name.contains(char::is_whitespace);
    if ours { Model::AsWritten } else { Model::Parents }
}

/// In lower case, and without the tool set in front.
pub(super) const TOOLS: [(&str, &[&str]); 39] = [
    ("read", &["read_file", "list_files"]),
    ("readfile", &["read_file"]),
    ("notebookread", &["read_file"]),
    ("view", &["read_file"]),
    ("edit", &["edit_file", "write_file"]),
    ("editfiles", &["edit_file", "write_file"]),
    ("multiedit", &["edit_file", "write_file"]),
    ("write", &["edit_file", "write_file"]),
    ("notebookedit", &["edit_file", "write_file"]),
    ("createfile", &["write_file"]),
    ("createdirectory", &["write_file"]),
    ("new", &["write_file"]),
    ("execute", &["shell"]),
    ("shell", &["shell"]),
    ("bash", &["shell"]),
    ("powershell", &["shell"]),
    ("runcommands", &["shell"]),
    ("runinterminal", &["shell"]),
    ("runtasks", &["shell"]),
    ("runtests", &["shell"]),
    ("search", &["grep_files", "glob_files"]),
    ("grep", &["grep_files"]),
    ("glob", &["glob_files"]),
    ("codebase", &["grep_files"]),
    ("textsearch", &["grep_files"]),
    ("filesearch", &["glob_files"]),
    ("listdirectory", &["list_files"]),
    ("agent", &["agent_spawn", "agent_fanout"]),
    ("custom-agent", &["agent_spawn", "agent_fanout"]),
    ("task", &["agent_spawn", "agent_fanout"]),
    ("runsubagent", &["agent_spawn", "agent_fanout"]),
    ("web", &[]),
    ("websearch", &[]),
    ("webfetch", &[]),
    ("fetch", &[]),
    ("todo", &[]),
    ("todos", &[]),
    ("problems", &[]),
    ("usages", &[]),
];

/// What may stand before a slash without being an MCP server.
pub(super) const SETS: [&str; 8] = ["read", "edit", "search", "execute", "agent", "web", "todo", "vscode"];
