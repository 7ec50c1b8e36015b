//! Whose file it is, and that a key means the same everywhere.

use super::*;
use crate::yaml;

#[test]
fn the_path_tells() {
    let check = |path: &str, expected: Option<Dialect>| {
        assert_eq!(Dialect::of_path(Path::new(path)), expected, "{path}");
    };
    check(".claude/agents/a.md", Some(Dialect::ClaudeCode));
    check("/home/u/.claude/agents/team/a.md", Some(Dialect::ClaudeCode));
    check("x/.opencode/agent/a.md", Some(Dialect::OpenCode));
    check("x/.opencode/agents/a.md", Some(Dialect::OpenCode));
    check("/home/u/.config/opencode/agent/a.md", Some(Dialect::OpenCode));
    check(".github/agents/a.agent.md", Some(Dialect::Copilot));
    check(".github/agents/a.md", Some(Dialect::Copilot));
    check("anywhere/a.agent.md", Some(Dialect::Copilot));
    check(".gemini/agents/a.md", Some(Dialect::GeminiCli));
    check(".cursor/agents/a.md", Some(Dialect::Cursor));
    check(".codex/agents/a.toml", Some(Dialect::Codex));
    check(".goose/agents/a.md", Some(Dialect::Goose));
    check("/home/u/.agents/agents/a.md", Some(Dialect::Goose));
    for path in
        ["a.md", "subagents/a.md", "agents/a.md", ".claude/a.md", ".claude/commands/a.md", "agent.md", ""]
    {
        check(path, None);
    }
}

#[test]
fn or_else_the_keys_tell() {
    let check = |lines: &str, expected: Dialect| {
        let root = yaml::read(lines).unwrap();
        let keys: Vec<Keyed<'_>> =
            root.entries().unwrap().iter().map(|entry| (entry.key.clone(), entry)).collect();
        assert_eq!(Dialect::of(Path::new("subagents/a.md"), &keys), expected, "{lines}");
    };
    check("description: a", Dialect::Mainstem);
    check("name: a\ndescription: a\ntools: Read\nmodel: sonnet", Dialect::Mainstem);
    check("maxTurns: 5", Dialect::Mainstem);
    check("disallowedTools: Bash", Dialect::ClaudeCode);
    check("permissionMode: plan\nmemory: user", Dialect::ClaudeCode);
    check("tools: {write: false}", Dialect::OpenCode);
    check("permission: deny", Dialect::OpenCode);
    check("maxSteps: 5", Dialect::OpenCode);
    check("target: vscode", Dialect::Copilot);
    check("kind: local\nmax_turns: 5", Dialect::GeminiCli);
    check("readonly: true", Dialect::Cursor);
    check("handoffs: []\nuser-invocable: true", Dialect::Copilot);
    // Two products have it, or each has one.
    check("color: red", Dialect::Mainstem);
    check("permission: deny\ntarget: vscode", Dialect::Mainstem);
    check("permission: deny\ndisable: true\ntarget: vscode", Dialect::OpenCode);
    // No other product has it.
    check("permissionMode: plan\nmemory: user\ndisallowed_tools: a", Dialect::Mainstem);
}

#[test]
fn a_key_means_the_same_in_every_product() {
    for one in Dialect::OTHERS {
        for (key, meaning) in one.table() {
            for other in Dialect::OTHERS {
                assert!(
                    other.lookup(key).is_none_or(|theirs| theirs == *meaning),
                    "{key} of {one} and {other}"
                );
            }
            if let Meaning::Same(ours) = meaning {
                assert!(Key::named(ours).is_some(), "{key} is read as {ours}");
            }
        }
    }
}

#[test]
fn every_tool_is_read_as_ones_of_ours() {
    const OURS: [&str; 16] = [
        "read_file",
        "write_file",
        "edit_file",
        "list_files",
        "glob_files",
        "grep_files",
        "shell",
        "agent_spawn",
        "agent_fanout",
        "agent_send",
        "task_output",
        "task_list",
        "task_cancel",
        "load_skill",
        "plan_enter",
        "plan_exit",
    ];
    let tables: [&[(&str, &[&str])]; 4] =
        [&claude_code::TOOLS, &open_code::TOOLS, &copilot::TOOLS, &gemini_cli::TOOLS];
    for (name, ours) in tables.into_iter().flatten() {
        assert!(ours.iter().all(|tool| OURS.contains(tool)), "{name}: {ours:?}");
    }
}

#[test]
fn tools_are_found_by_their_product() {
    let check = |dialect: Dialect, name: &str, expected: Option<&[&str]>| {
        assert_eq!(our_tools(dialect, name), expected, "{dialect}: {name}");
    };
    check(Dialect::Mainstem, "Read", None);
    check(Dialect::ClaudeCode, "Read", Some(&["read_file"]));
    check(Dialect::ClaudeCode, "read", None);
    check(Dialect::ClaudeCode, "WebFetch", Some(&[]));
    check(Dialect::ClaudeCode, "mcp__github__get_issue", None);
    check(Dialect::OpenCode, "bash", Some(&["shell"]));
    check(Dialect::Copilot, "edit/editFiles", Some(&["edit_file", "write_file"]));
    check(Dialect::Copilot, "Execute/*", Some(&["shell"]));
    check(Dialect::Copilot, "editFiles", Some(&["edit_file", "write_file"]));
    check(Dialect::Copilot, "github/search", None);
    check(Dialect::GeminiCli, "run_shell_command", Some(&["shell"]));
    check(Dialect::GeminiCli, "google_web_search", Some(&[]));
    check(Dialect::Cursor, "Read", None);
    let server = |name: &str| server_tool(Dialect::GeminiCli, name);
    assert_eq!(server("mcp_git_*").as_deref(), Some("mcp__git__*"));
    assert_eq!(server("mcp_*").as_deref(), Some("mcp__*"));
    assert_eq!(server("mcp_git_log").as_deref(), Some("mcp__git__log"));
    assert_eq!(server("mcp__git__log"), None);
    assert_eq!(foreign_tool("Grep"), Some(&["grep_files"][..]));
    assert_eq!(foreign_tool("WebFetch"), None);
    assert_eq!(foreign_tool("grep"), None);
}

#[test]
fn models_are_ours_or_the_parents() {
    let check = |dialect: Dialect, name: &str, expected: Model| {
        assert_eq!(dialect.model(name), expected, "{dialect}: {name}");
    };
    let ours = |name: &str| Model::Ours(name.to_owned());
    for dialect in Dialect::OTHERS {
        check(dialect, "inherit", Model::Parents);
        check(dialect, "openai:gpt-4o", Model::AsWritten);
    }
    check(Dialect::Mainstem, "inherit", Model::Parents);
    check(Dialect::Mainstem, "sonnet", Model::AsWritten);
    for alias in ["sonnet", "Opus", "haiku", "sonnet[1m]", "opusplan"] {
        check(Dialect::ClaudeCode, alias, Model::Parents);
    }
    check(Dialect::ClaudeCode, "claude-sonnet-4-5", ours("anthropic:claude-sonnet-4-5"));
    check(Dialect::ClaudeCode, "glm", Model::AsWritten);
    check(Dialect::OpenCode, "anthropic/claude-sonnet-4-5", ours("anthropic:claude-sonnet-4-5"));
    check(Dialect::OpenCode, "openrouter/deepseek/r1:free", ours("openrouter:deepseek/r1:free"));
    check(Dialect::Copilot, "Claude Sonnet 4.5 (copilot)", Model::Parents);
    check(Dialect::Copilot, "gpt-4.1", Model::Parents);
    check(Dialect::GeminiCli, "gemini-3-flash-preview", Model::AsWritten);
    check(Dialect::GeminiCli, "flash", Model::Parents);
    check(Dialect::Cursor, "fast", Model::Parents);
    check(Dialect::Cursor, "claude-4.5-sonnet-thinking", Model::Parents);
    check(Dialect::Codex, "gpt-5.3-codex", Model::AsWritten);
    check(Dialect::Goose, "sonnet", Model::Parents);
    check(Dialect::Goose, "gpt-4o", Model::AsWritten);
}
