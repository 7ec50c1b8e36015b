//! Files of other products: what reaches the spec, and what is said about the rest.

use std::path::Path;

use insta::assert_snapshot;

use crate::{AgentSpec, Dialect, Mode, Parsed, Permission, SpecError, parse};

const CLAUDE: &str = ".claude/agents/reviewer.md";
const OPENCODE: &str = ".opencode/agent/reviewer.md";
const COPILOT: &str = ".github/agents/reviewer.agent.md";

fn read(path: &str, lines: &str) -> Result<Parsed, Vec<SpecError>> {
    parse("reviewer", &format!("---\ndescription: Reviews\n{lines}\n---\nBe brief.\n"), Path::new(path))
}

#[track_caller]
fn spec(path: &str, lines: &str) -> AgentSpec {
    read(path, lines).unwrap_or_else(|found| panic!("{lines}: {found:?}")).spec
}

/// Everything found, without the file's name.
fn report(path: &str, lines: &str) -> String {
    let found = read(path, lines).map_or_else(|found| found, |parsed| parsed.warnings);
    assert!(found.iter().all(|error| error.position.is_some() && error.key.is_some()), "{found:?}");
    found.iter().map(|error| format!("{error}\n").replace(path, "")).collect()
}

#[test]
fn claude_code_is_read() {
    let lines = "name: reviewer\ntools: Read, Grep, Bash, WebFetch, mcp__github__get_issue\ndisallowedTools: Write, mcp__slack__*, Bash(rm:*)\nmodel: sonnet\nmaxTurns: 30\nbackground: true\nskills:\n  - style";
    let spec = spec(CLAUDE, lines);
    assert_eq!(
        spec.tools.unwrap(),
        ["read_file", "grep_files", "shell", "WebFetch", "mcp__github__get_issue"]
    );
    // A refusal holds for a tool of either name.
    assert_eq!(spec.disallowed_tools, ["Write", "write_file"]);
    let denied: Vec<_> = spec.permissions.iter().map(|(pattern, _)| pattern.as_str()).collect();
    assert_eq!(denied, ["mcp__slack__*", "Bash(rm *)", "shell(rm *)"]);
    assert!(spec.permissions.iter().all(|(_, permission)| *permission == Permission::Deny));
    assert_eq!((spec.model, spec.steps, spec.timeout), (None, 30, Some(std::time::Duration::ZERO)));
    assert_eq!(spec.skills.unwrap(), ["style"]);
    assert_snapshot!(report(CLAUDE, lines), @r#"
    :4:8: warning: names of Claude Code's tools are read as ours: Read is read_file, Grep is grep_files, Bash is shell, WebFetch has no counterpart
    :5:1: warning: "disallowedTools" is read as "disallowed_tools"
    :5:18: warning: names of Claude Code's tools are read as ours: Write is write_file, Bash(rm:*) is shell
    :6:8: warning: model "sonnet" is an alias of Claude Code: the parent's is used; name another as provider:model
    :7:1: warning: "maxTurns" is read as "steps"
    :8:1: warning: "background" is read as "timeout_seconds": 0
    "#);
}

#[test]
fn what_claude_code_has_and_mainstem_has_not_is_said() {
    assert_snapshot!(report(CLAUDE, "permissionMode: acceptEdits\nmcpServers: [github]\nhooks: {PreToolUse: []}\nmemory: project\neffort: high\nisolation: worktree\ncolor: cyan\ninitialPrompt: Go\nallowed-tools: Read\nfavourite: tea"), @r#"
    :3:1: warning: "permissionMode" of Claude Code is ignored: an agent's permissions narrow its parent's and never widen them
    :4:1: warning: "mcpServers" is read as "mcp_servers"
    :5:1: warning: "hooks" of Claude Code is ignored: hooks aren't run, so what they forbid is not forbidden; use permissions
    :6:1: warning: "memory" of Claude Code is ignored: agents keep no memory beside their session; see persist_session
    :8:1: warning: "isolation" of Claude Code is ignored: there are no git worktrees; workspace.mode says where an agent works
    :9:1: warning: "color" of Claude Code is ignored: nothing shows an agent's colour
    :10:1: warning: "initialPrompt" of Claude Code is ignored: an agent starts with the task that it is given
    :11:1: warning: "allowed-tools" of Claude Code is ignored: that is a key of skills and commands; an agent's tools are in "tools"
    :12:1: warning: unknown key "favourite"
    "#);
    assert_snapshot!(report(CLAUDE, "tools: Agent(worker, tester), Bash(git:*), Read\nmodel: inherit\npermissionMode: plan"), @r#"
    :3:8: warning: names of Claude Code's tools are read as ours: Read is read_file
    :3:8: warning: "Agent(worker, tester)" is left out: a tool is listed as a whole, and narrowed in "permissions"
    :3:8: warning: "Bash(git:*)" is left out: a tool is listed as a whole, and narrowed in "permissions"
    :4:8: warning: "inherit" is an alias of another product: the parent's model is used, as without the key
    :5:1: warning: "permissionMode" "plan" is read as "disallowed_tools": write_file, edit_file, shell
    "#);
    let spec = spec(CLAUDE, "tools: Agent(worker, tester), Bash(git:*), Read\npermissionMode: plan");
    assert_eq!(spec.tools.unwrap(), ["read_file"]);
    assert_eq!(spec.disallowed_tools, ["write_file", "edit_file", "shell"]);
    assert_snapshot!(report(CLAUDE, "maxTurns: many\ndisallowedTools: {a: b}"), @r#"
    :3:1: warning: "maxTurns" is read as "steps"
    :3:11: error: expected a whole number, got "many"
    :4:1: warning: "disallowedTools" is read as "disallowed_tools"
    :4:18: error: expected a list, or names with commas in between, got a mapping
    "#);
}

#[test]
fn opencode_is_read() {
    let lines = "mode: subagent\nmodel: anthropic/claude-sonnet-4-5\ntemperature: 0.1\ntop_p: 0.9\nsteps: 12\ntools:\n  write: false\n  read: true\n  mymcp_*: false\npermission:\n  edit: ask\n  bash: {\"git *\": allow, 'git push *': deny}\n  webfetch: deny";
    let spec = spec(OPENCODE, lines);
    assert_eq!(
        (spec.mode, spec.steps, spec.temperature, spec.top_p),
        (Mode::Subagent, 12, Some(0.1), Some(0.9))
    );
    assert_eq!(spec.model.as_deref(), Some("anthropic:claude-sonnet-4-5"));
    assert_eq!(spec.tools, None);
    assert_eq!(spec.disallowed_tools, ["write", "write_file", "edit_file"]);
    let rules = spec.permissions.iter().map(|(pattern, permission)| format!("{pattern} {permission:?}\n"));
    assert_snapshot!(rules.collect::<String>(), @r"
    mymcp_* Deny
    edit_file Ask
    write_file Ask
    edit Ask
    shell(git *) Allow
    shell(git push *) Deny
    bash(git push *) Deny
    webfetch Deny
    ");
    assert_snapshot!(report(OPENCODE, lines), @r#"
    :4:8: warning: model "anthropic/claude-sonnet-4-5" is read as "anthropic:claude-sonnet-4-5"
    :9:3: warning: these flags are read as "disallowed_tools": write, write_file, edit_file, mymcp_*
    :12:1: warning: these rules are read as "permissions" of ours; the strictest rule decides here, not the last one
    "#);
}

#[test]
fn flags_of_tools_are_a_list() {
    let flags = |flags: &str| {
        let spec = spec(OPENCODE, &format!("tools: {flags}"));
        (spec.tools, spec.disallowed_tools)
    };
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(flags("{}"), (None, vec![]));
    assert_eq!(flags("{read: true}"), (None, vec![]));
    assert_eq!(flags("{bash: false, x: false}"), (None, texts(&["bash", "shell", "x"])));
    assert_eq!(flags("{'*': false, read: true, x: true}"), (Some(texts(&["read_file", "x"])), vec![]));
    assert_eq!(flags("{'*': false}"), (Some(vec![]), vec![]));
    assert_eq!(
        spec("subagents/reviewer.md", "tools: {write: false}").disallowed_tools,
        ["write", "write_file", "edit_file"]
    );
}

#[test]
fn rules_of_opencode_never_come_out_wider() {
    let check = |lines: &str, expected: &[&str]| {
        let spec = spec(OPENCODE, &format!("permission:\n{lines}"));
        let rules: Vec<_> = spec
            .permissions
            .iter()
            .map(|(pattern, permission)| format!("{permission:?} {pattern}"))
            .collect();
        assert_eq!(rules, expected, "{lines}");
    };
    check("  \"*\": ask", &["Ask *"]);
    check("  bash: {'*': deny}", &["Deny shell", "Deny bash"]);
    check("  bash: {\"echo a: *\": deny}", &["Deny shell(command: echo a: *)", "Deny bash(echo a: *)"]);
    check("  read: {'*.env': deny}", &["Deny read_file(path: **/*.env)", "Deny read(*.env)"]);
    check("  read: {'src/*': deny}", &["Deny read_file(path: src/**)", "Deny read(src/*)"]);
    check(
        "  read: {'src/key*': deny}",
        &["Deny read_file(path: src/**/key*)", "Deny read_file(path: src/**/key*/**)", "Deny read(src/key*)"],
    );
    check("  read: {'src/*.rs': allow}", &["Allow read_file(path: src/*.rs)"]);
    check(
        "  task: {'*': deny, 'explore-*': ask}",
        &[
            "Deny agent_spawn",
            "Deny agent_fanout",
            "Deny task",
            "Ask agent_spawn(agent_id: explore-*)",
            "Ask agent_fanout(/spawns/*/agent_id: explore-*)",
            "Ask task(explore-*)",
        ],
    );
    check("  mymcp_*: deny", &["Deny mymcp_*"]);
    check("  edit: deny", &["Deny edit_file", "Deny write_file", "Deny edit"]);
    assert_eq!(spec(OPENCODE, "permission: deny").permissions, [("*".to_owned(), Permission::Deny)]);
    let rules = "permissions:\n  - {action: shell, resource: 'rm *', effect: deny}\n  - {action: '*', resource: '*', effect: ask}";
    let rules = spec(OPENCODE, rules).permissions;
    assert_eq!(rules, [("shell(rm *)".to_owned(), Permission::Deny), ("*".to_owned(), Permission::Ask)]);
}

#[test]
fn what_opencode_has_and_mainstem_has_not_is_said() {
    assert_snapshot!(report(OPENCODE, "color: '#ff0000'\nvariant: fast\nreasoningEffort: high\nhidden: true\nprompt: Be long.\npermission: {doom_loop: ask, bash: alow, edit: {a: 1}}"), @r#"
    :3:1: warning: "color" of OpenCode is ignored: nothing shows an agent's colour
    :4:1: warning: "variant" of OpenCode is ignored: options of a provider are set with the model
    :5:1: warning: "reasoningEffort" is read as "effort"
    :6:9: warning: a hidden agent can't be spawned by a model either
    :7:9: warning: "prompt" is ignored, because there is a prompt below
    :8:14: warning: "doom_loop" has no counterpart here and is ignored
    :8:36: error: expected "allow" or "ask" or "deny", got "alow"; did you mean "allow"?
    :8:52: error: expected "allow" or "ask" or "deny", got the number 1
    "#);
    assert_snapshot!(report(OPENCODE, "tools: {write: no}\npermission: [{action: a}, b]"), @r#"
    :3:16: error: expected true or false, got "no"; did you mean "false"?
    :4:14: error: the rule has no "resource"
    :4:27: error: expected a mapping of `key: value` lines, got "b"
    "#);
}

#[test]
fn a_prompt_may_stand_above() {
    let prompt = |lines: &str| {
        parse("a", &format!("---\ndescription: a\nmode: all\n{lines}\n---\n"), Path::new(OPENCODE))
    };
    assert_eq!(prompt("prompt: Be brief.").unwrap().spec.prompt, "Be brief.");
    let found = prompt("prompt: '{file:./p.txt}'").unwrap_err();
    assert_snapshot!(found[0].to_string(), @".opencode/agent/reviewer.md:4:9: error: the prompt is in another file, which isn't followed: put it below the front matter");
}

#[test]
fn a_disabled_agent_is_marked_wherever_it_is() {
    for (path, key) in [
        (OPENCODE, "disable"),
        (OPENCODE, "disabled"),
        ("subagents/reviewer.md", "disable"),
        (CLAUDE, "disabled"),
    ] {
        assert!(read(path, &format!("{key}: true")).unwrap().disabled, "{path}");
        assert!(!read(path, &format!("{key}: false")).unwrap().disabled, "{path}");
    }
    assert_snapshot!(report(OPENCODE, "disable: true"), @":3:1: warning: the agent is switched off and left out");
}

#[test]
fn copilot_is_read() {
    let lines = "name: Reviewer\ntools: ['codebase', 'edit/editFiles', 'search', 'runCommands', 'github/*', 'usages']\nmodel: Claude Sonnet 4.5 (copilot)\ntarget: vscode\nargument-hint: what to review\nhandoffs: [{label: Go, agent: b}]\nmcp-servers: {x: {type: local}}\nmetadata: {a: b}";
    let spec = spec(COPILOT, lines);
    assert_eq!(
        spec.tools.unwrap(),
        ["grep_files", "edit_file", "write_file", "glob_files", "shell", "mcp__github__*", "usages"]
    );
    assert_eq!(spec.model, None);
    assert_snapshot!(report(COPILOT, lines), @r#"
    :4:8: warning: names of Copilot's tools are read as ours: codebase is grep_files, edit/editFiles is edit_file and write_file, search is grep_files and glob_files, runCommands is shell, usages has no counterpart
    :5:8: warning: model "Claude Sonnet 4.5 (copilot)" is an alias of Copilot: the parent's is used; name another as provider:model
    :6:1: warning: "target" of Copilot is ignored: the agent is read whatever it is meant for
    :7:1: warning: "argument-hint" of Copilot is ignored: there is no input field to show it in
    :8:1: warning: "handoffs" of Copilot is ignored: an agent hands over by agent_spawn; tell it so in the prompt
    :9:1: warning: "mcp-servers" is read as "mcp_servers"
    :10:1: warning: "metadata" of Copilot is ignored: nothing reads it
    "#);
    assert_snapshot!(report(COPILOT, "model: [GPT-5, GPT-4.1]\nmode: agent\ntools: ['*']\nagents: [worker]"), @r#"
    :3:8: warning: the models are Copilot's; the parent's is used
    :4:7: warning: "mode" of Copilot is ignored: it says how a chat works
    :6:1: warning: "agents" of Copilot is not obeyed: which agents it may spawn can't be limited by name: it spawns none
    "#);
}

#[test]
fn gemini_cli_is_read() {
    let path = ".gemini/agents/reviewer.md";
    let lines = "name: reviewer\nkind: local\ntools: [read_file, grep_search, run_shell_command, web_fetch, mcp_git_*]\nmodel: flash\ntemperature: 0.2\nmax_turns: 10\ntimeout_mins: 5";
    let read = spec(path, lines);
    assert_eq!(read.tools.unwrap(), ["read_file", "grep_files", "shell", "web_fetch", "mcp__git__*"]);
    assert_eq!((read.model, read.steps), (None, 10));
    assert_snapshot!(report(path, lines), @r#"
    :5:8: warning: names of Gemini CLI's tools are read as ours: grep_search is grep_files, run_shell_command is shell, web_fetch has no counterpart
    :6:8: warning: model "flash" is an alias of Gemini CLI: the parent's is used; name another as provider:model
    :8:1: warning: "max_turns" is read as "steps"
    :9:1: warning: "timeout_mins" of Gemini CLI is ignored: an agent has no time limit of its own; timeout_seconds is how long its parent waits
    "#);
    let remote = "---\nname: far\ndescription: Far away\nkind: remote\nagent_card_url: https://far.example/card.json\nauth: {type: apiKey}\n---\n";
    let parsed = parse("far", remote, Path::new(".gemini/agents/far.md")).unwrap();
    assert_eq!(parsed.spec.url.as_deref(), Some("https://far.example/card.json"));
    assert_eq!(parsed.spec.protocol, Some(crate::Protocol::A2a));
    let said: String = parsed.warnings.iter().map(|warning| format!("{warning}\n")).collect();
    assert_snapshot!(said, @r#"
    .gemini/agents/far.md:4:1: warning: "kind" "remote" is read as "protocol": a2a
    .gemini/agents/far.md:5:1: warning: "agent_card_url" is read as "url"
    .gemini/agents/far.md:6:1: warning: "auth" of Gemini CLI is ignored: a secret is a ${VARIABLE} in headers
    "#);
}

#[test]
fn cursor_and_goose_are_read() {
    let path = ".cursor/agents/reviewer.md";
    let lines = "name: reviewer\nmodel: fast\nreadonly: true\nis_background: true";
    let read = spec(path, lines);
    assert_eq!(read.disallowed_tools, ["write_file", "edit_file", "shell"]);
    assert_eq!(read.timeout, Some(std::time::Duration::ZERO));
    assert_snapshot!(report(path, lines), @r#"
    :4:8: warning: model "fast" is an alias of Cursor: the parent's is used; name another as provider:model
    :5:1: warning: "readonly" true is read as "disallowed_tools": write_file, edit_file, shell
    :6:1: warning: "is_background" is read as "timeout_seconds": 0
    "#);
    assert_eq!(spec(path, "readonly: false").disallowed_tools, [""; 0]);
    assert_eq!(spec(".goose/agents/reviewer.md", "model: sonnet").model, None);
    assert_eq!(spec(".goose/agents/reviewer.md", "model: gpt-4o").model.as_deref(), Some("gpt-4o"));
}

#[test]
fn codex_is_read() {
    let path = Path::new(".codex/agents/reviewer.toml");
    let text = r#"
# A reviewer.
name = "reviewer"
description = "Reviews"
model = "gpt-5.3-codex"
model_reasoning_effort = "high"
sandbox_mode = "read-only"
nickname_candidates = ["Ada", "Grace"]
web_search = "live"
developer_instructions = """
Be brief.
Cite lines."""

[mcp_servers.docs]
url = "https://docs.example/mcp"

[[skills.config]]
path = "/skills/pdf"
enabled = true
"#;
    let parsed = parse("reviewer", text, path).unwrap();
    let spec = parsed.spec;
    assert_eq!(spec.prompt, "Be brief.\nCite lines.");
    assert_eq!((spec.model.as_deref(), spec.description.as_str()), (Some("gpt-5.3-codex"), "Reviews"));
    assert_eq!(spec.effort, Some(crate::Effort::High));
    assert_eq!(spec.disallowed_tools, ["write_file", "edit_file", "shell"]);
    let said: String = parsed.warnings.iter().map(|warning| format!("{warning}\n")).collect();
    assert_snapshot!(said, @r#"
    .codex/agents/reviewer.toml:6:1: warning: "model_reasoning_effort" is read as "effort"
    .codex/agents/reviewer.toml:7:1: warning: "sandbox_mode" "read-only" is read as "disallowed_tools": write_file, edit_file, shell
    .codex/agents/reviewer.toml:8:1: warning: "nickname_candidates" of Codex is ignored: an agent is shown by its id and its label
    .codex/agents/reviewer.toml:9:1: warning: "web_search" of Codex is ignored: there is no such tool; an MCP server can have one
    .codex/agents/reviewer.toml:17:3: warning: "skills" of Codex is ignored: it switches skills of Codex; those of an agent here are a list of names
    "#);
    let errors = |text: &str| {
        let found = parse("reviewer", text, path).unwrap_err();
        found.iter().map(|error| format!("{error}\n")).collect::<String>()
    };
    assert_snapshot!(errors("name = \"a\"\ndescription = \n"), @r"
    .codex/agents/reviewer.toml:2:15: error: invalid TOML: string values must be quoted, expected literal string
    ");
    assert_snapshot!(errors("description = 5\nsandbox_mode = [1]\ndeveloper_instructions = \"x\"\n"), @r"
    .codex/agents/reviewer.toml:1:15: error: expected text, got the number 5: put it in quotes
    .codex/agents/reviewer.toml:2:16: error: expected text, got a list
    ");
    assert_snapshot!(errors("name = 'a'\nname = 'b'\ndescription = 'c'\n"), @".codex/agents/reviewer.toml:2:1: error: invalid TOML: duplicate key");
}

#[test]
fn who_may_call_it_is_its_mode() {
    let check = |lines: &str, mode: Mode, hidden: bool| {
        let spec = spec(COPILOT, lines);
        assert_eq!((spec.mode, spec.hidden), (mode, hidden), "{lines}");
    };
    check("infer: true", Mode::All, false);
    check("infer: false", Mode::Primary, false);
    check("disable-model-invocation: true", Mode::Primary, false);
    check("disable-model-invocation: false\ninfer: false", Mode::All, false);
    check("user-invocable: false", Mode::Subagent, false);
    check("user-invokable: false", Mode::Subagent, false);
    check("user-invocable: false\ndisable-model-invocation: true", Mode::All, true);
    assert_snapshot!(report(COPILOT, "infer: false"), @r#":3:1: warning: "infer" is read as "mode": primary"#);
}

#[test]
fn a_file_of_ours_is_told_what_is_not_ours() {
    let ours = "subagents/reviewer.md";
    assert_snapshot!(report(ours, "tools: Read, Bash, search\ndisallowed_tools: [Write]\nmodel: inherit\ncolor: red\nmemory: user"), @r#"
    :3:8: warning: these are names of Claude Code's tools and mean nothing here: Read is read_file, Bash is shell
    :4:19: warning: these are names of Claude Code's tools and mean nothing here: Write is write_file
    :5:8: warning: "inherit" is an alias of another product: the parent's model is used, as without the key
    :6:1: warning: "color" of Claude Code is ignored: nothing shows an agent's colour
    :7:1: warning: "memory" of Claude Code is ignored: agents keep no memory beside their session; see persist_session
    "#);
    let spec = spec(ours, "tools: Read, Bash, search\nmodel: sonnet");
    assert_eq!(
        (spec.tools.unwrap().join(" "), spec.model.as_deref()),
        ("Read Bash search".to_owned(), Some("sonnet"))
    );
}

#[test]
fn ids_of_others_are_made_ours() {
    let read = |id: &str, path: &str| {
        parse(id, "---\nname: CLI UX Designer\ndescription: a\n---\n", Path::new(path))
    };
    let parsed = read("CLI UX Designer", ".github/agents/CLI UX Designer.agent.md").unwrap();
    assert_eq!((parsed.spec.id.as_str(), parsed.dialect), ("cli-ux-designer", Dialect::Copilot));
    assert_snapshot!(parsed.warnings[0].message, @r#"invalid agent id "CLI UX Designer": use a-z, 0-9, _ and -, starting with a letter or digit; it is called "cli-ux-designer" here"#);
    assert_eq!(parsed.warnings.len(), 1);
    assert!(read("CLI UX Designer", "subagents/CLI UX Designer.md").is_err());
    assert!(read("é", ".claude/agents/é.md").is_err());
}

#[test]
fn a_parsed_file_knows_its_places() {
    let parsed = read(CLAUDE, "maxTurns: 3\nmodel: claude-x\ndisallowedTools: Bash\ncolor: red").unwrap();
    let line = |key: &str| parsed.place(key).map(|at| at.line);
    assert_eq!((line("description"), line("steps"), line("model")), (Some(2), Some(3), Some(4)));
    assert_eq!((line("disallowed_tools"), line("color"), line("tools")), (Some(5), None, None));
}

#[test]
fn servers_and_their_tools_are_named_as_they_are_here() {
    let check = |path: &str, lines: &str, servers: &[&str], tools: &[&str]| {
        let spec = spec(path, lines);
        let named: Vec<_> = spec.mcp_servers.iter().flatten().map(|server| &*server.name).collect();
        assert_eq!(
            (&*named, spec.tools.unwrap_or_default()),
            (servers, tools.iter().map(|tool| (*tool).to_owned()).collect())
        );
    };
    let claude = "tools: mcp__github, mcp__slack__send\nmcpServers:\n  - github\n  - slack:\n      command: npx\n      env: {TOKEN: s3cret}";
    check(CLAUDE, claude, &["github", "slack"], &["mcp__github__*", "mcp__slack__send"]);
    let copilot =
        "tools: ['github/*', 'slack/send', 'read']\nmcp-servers: {slack: {type: local, command: npx}}";
    check(COPILOT, copilot, &["slack"], &["mcp__github__*", "mcp__slack__send", "read_file", "list_files"]);
    check("subagents/reviewer.md", "mcp_servers: github, slack", &["github", "slack"], &[]);
    let declared = spec(CLAUDE, claude).mcp_servers.unwrap();
    assert_eq!(declared[1].declaration.as_ref().unwrap()["command"], "npx");
    assert!(declared[0].declaration.is_none() && !format!("{declared:?}").contains("s3cret"), "{declared:?}");
    assert_snapshot!(report("subagents/reviewer.md", "mcp_servers: [1]"), @":3:15: error: expected the name of an MCP server, or a name and how it is reached");
}
