//! `mainstem agents`: what is listed, shown, made and found wrong.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Cli, Done, example, mainstem};

const REVIEWER: &str = "---\ndescription: Reviews code\nmodel: openai:gpt-4o\nsteps: 20\ntools: [read_file, grep_files]\ndisallowed_tools: shell\nmode: subagent\npermissions:\n  \"shell(git *)\": allow\n  write_*: deny\n---\n";

/// The same agent elsewhere, which this version leaves out.
const REMOTE: &str = "---\ndescription: Reviews code\nmodel: openai:gpt-4o\nsteps: 20\ntools: [read_file, grep_files]\ndisallowed_tools: shell\nmode: subagent\npermissions:\n  \"shell(git *)\": allow\n  write_*: deny\nurl: https://agents.example/x\nheaders:\n  Authorization: Bearer ${REVIEW_TOKEN:-sk-secret}\n---\n";

fn workspace(arguments: &str) -> Cli {
    let cli = mainstem(&format!("agents {arguments}"));
    let cli = cli.file("subagents/reviewer.md", REVIEWER);
    let cli =
        cli.file("subagents/tester.md", "---\ndescription: Tests code\nhidden: true\n---\nBe thorough.\n");
    cli.file(".claude/agents/critic.md", "---\ndescription: Criticises\ntools: Read\n---\nBe kind.\n")
}

/// Exit code, stdout, stderr.
fn said(done: &Done) -> String {
    format!("{}\n{}--\n{}", done.code.unwrap(), done.stdout, done.stderr)
}

#[test]
fn list_is_a_line_an_agent() {
    assert_snapshot!(said(&workspace("list").run()), @r"
    0
    ID               MODE      HIDDEN  MODEL          TOOLS                           ORIGIN
    general-purpose  all       no      -              all                             built-in
    reviewer         subagent  no      openai:gpt-4o  read_file,grep_files but shell  ./subagents/reviewer.md
    tester           all       yes     -              all                             ./subagents/tester.md
    --
    warning: 1 warning in these files: see `mainstem agents validate`
    ");
    assert_snapshot!(said(&workspace("list --foreign").run()), @r"
    0
    ID               MODE      HIDDEN  MODEL          TOOLS                           ORIGIN
    critic           all       no      -              read_file                       ./.claude/agents/critic.md
    general-purpose  all       no      -              all                             built-in
    reviewer         subagent  no      openai:gpt-4o  read_file,grep_files but shell  ./subagents/reviewer.md
    tester           all       yes     -              all                             ./subagents/tester.md
    --
    warning: 2 warnings in these files: see `mainstem agents validate --foreign`
    ");
    let broken = mainstem("agents list").file("subagents/a.md", "---\ndescription: a\nsteps: many\n---\n");
    assert_snapshot!(said(&broken.run()), @r#"
    0
    ID               MODE  HIDDEN  MODEL  TOOLS  ORIGIN
    general-purpose  all   no      -      all    built-in
    --
    ./subagents/a.md:3:8: error: expected a whole number, got "many"
    "#);
}

#[test]
fn list_is_for_programs_too() {
    let done = workspace("list --output json --foreign").run();
    let list: Value = serde_json::from_str(&done.stdout).unwrap();
    let ids: Vec<_> = list.as_array().unwrap().iter().map(|agent| &agent["id"]).collect();
    assert_eq!(ids, ["critic", "general-purpose", "reviewer", "tester"]);
    assert_eq!(
        list[2],
        json!({
            "id": "reviewer", "description": "Reviews code", "mode": "subagent", "hidden": false,
            "model": "openai:gpt-4o", "tools": ["read_file", "grep_files"], "disallowed_tools": ["shell"],
            "origin": "./subagents/reviewer.md",
        })
    );
}

#[test]
fn keys_are_listed_with_their_defaults() {
    let done = mainstem("agents keys").run();
    let lines: Vec<_> = done.stdout.lines().map(|line| line.split("  ").next().unwrap_or_default()).collect();
    assert_eq!(lines.first(), Some(&"KEY"));
    assert!(lines.contains(&"steps, max_iters,") && lines.contains(&"mcp_servers"), "{lines:?}");
    let keys: Value = serde_json::from_str(&mainstem("agents keys --output json").run().stdout).unwrap();
    let steps = keys.as_array().unwrap().iter().find(|key| key["name"] == "steps").unwrap();
    assert_eq!((&steps["default"], &steps["value"]), (&json!("10"), &json!("whole number from 1")));
}

#[test]
fn show_says_where_each_value_comes_from() {
    let done = workspace("show reviewer").file("subagents/reviewer.md", REMOTE).run();
    assert!(!format!("{done:?}").contains("sk-secret"), "{done:?}");
    assert_snapshot!(said(&done), @r#"
    0
    reviewer, from ./subagents/reviewer.md

    description       line 2    Reviews code
    model             line 3    openai:gpt-4o
    steps             line 4    20
    temperature       default   the parent's
    top_p             default   the parent's
    compact_at        default   the parent's
    effort            default   the parent's
    thinking_budget   default   the parent's
    max_output_tokens default   the parent's
    server_tools      default   the settings'
    tools             line 5    read_file, grep_files
    disallowed_tools  line 6    shell
    skills            default   all of the parent's
    mcp_servers       default   all of the parent's
    hidden            default   false
    mode              line 7    subagent
    workspace.mode    default   isolated
    workspace.path    default   -
    url               line 11   https://agents.example/x
    protocol          default   -
    headers           line 12   Authorization
    permissions       line 8    allow shell(git *)
                                deny write_*
    persist_session   default   false
    on_lost           default   close
    timeout_seconds   default   -
    max_tokens_total  default   -
    output_schema     default   -

    There is no prompt.
    --
    "#);
}

#[test]
fn show_says_what_a_file_of_another_product_means() {
    assert_snapshot!(said(&workspace("show --foreign critic").run()), @r"
    0
    critic, from ./.claude/agents/critic.md, written for Claude Code

    description       line 2    Criticises
    model             default   the parent's
    steps             default   10
    temperature       default   the parent's
    top_p             default   the parent's
    compact_at        default   the parent's
    effort            default   the parent's
    thinking_budget   default   the parent's
    max_output_tokens default   the parent's
    server_tools      default   the settings'
    tools             line 3    read_file
    disallowed_tools  default   none
    skills            default   all of the parent's
    mcp_servers       default   all of the parent's
    hidden            default   false
    mode              default   all
    workspace.mode    default   isolated
    workspace.path    default   -
    url               default   -
    protocol          default   -
    headers           default   none
    permissions       default   none
    persist_session   default   false
    on_lost           default   close
    timeout_seconds   default   -
    max_tokens_total  default   -
    output_schema     default   -

    Be kind.
    --
    ./.claude/agents/critic.md:3:8: warning: names of Claude Code's tools are read as ours: Read is read_file
    ");
}

/// The agent that always exists is listed and shown, and a file of its id takes its place.
#[test]
fn the_built_in_agent_is_shown_until_a_file_replaces_it() {
    let done = workspace("show general-purpose").run();
    assert!(done.code == Some(0) && done.stdout.starts_with("general-purpose, built-in\n"), "{done:?}");
    assert!(done.stdout.contains("workspace.mode    default   shared\n"), "{done:?}");
    let file = "---\ndescription: Ours\n---\nBe kind.\n";
    let own = mainstem("agents list").file("subagents/general-purpose.md", file).run();
    assert_eq!(own.stdout.matches("general-purpose  ").count(), 1, "{own:?}");
    assert!(own.stdout.contains("./subagents/general-purpose.md"), "{own:?}");
}

#[test]
fn show_is_for_programs_too() {
    let done = workspace("show tester --output json").run();
    let shown: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(shown["values"]["hidden"], json!({ "value": true, "at": { "line": 3, "column": 1 } }));
    assert_eq!(shown["values"]["model"], json!({ "value": null, "at": null }));
    assert_eq!((&shown["prompt"], &shown["written_for"]), (&json!("Be thorough."), &json!("Mainstem")));
}

#[test]
fn show_knows_what_there_is() {
    let done = workspace("show reviwer").run();
    assert_eq!(
        said(&done),
        "2\n--\nerror: unknown agent \"reviwer\"; known: general-purpose, reviewer, tester; did you mean \"reviewer\"?\n"
    );
    let done = mainstem("agents show x").run();
    assert_snapshot!(said(&done), @r#"
    2
    --
    error: unknown agent "x"; the workspace has none; `mainstem agents new x --description …` creates one
    "#);
    let broken = mainstem("agents show a").file("subagents/a.md", "---\ndescription: a\nsteps: many\n---\n");
    assert_snapshot!(said(&broken.run()), @r#"
    2
    --
    ./subagents/a.md:3:8: error: expected a whole number, got "many"
    error: agent "a" is left out
    "#);
}

#[test]
fn new_writes_a_file_that_is_valid() {
    let dir = tempfile::tempdir().unwrap();
    let cli =
        mainstem("agents new code-reviewer --description").arg("Reviews: \"all\" of it # really\n\tand é🦀");
    let done = cli.arg("-w").arg(dir.path()).run();
    let path = dir.path().join("subagents/code-reviewer.md");
    assert_eq!(said(&done), format!("0\n{}\n--\n", path.display()));
    let parsed = mainstem::spec::load_file(&path).unwrap();
    assert_eq!(parsed.warnings, []);
    assert_eq!(parsed.spec.description, "Reviews: \"all\" of it # really\n\tand é🦀");
    assert!(parsed.spec.prompt.contains("one task"), "{}", parsed.spec.prompt);
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn new_touches_nothing_that_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let new = |arguments: &str| {
        let done = mainstem(&format!("agents new tester --description {arguments} -w")).arg(dir.path()).run();
        said(&done).replace(dir.path().to_str().unwrap(), "WORKSPACE")
    };
    assert_eq!(new("First"), "0\nWORKSPACE/subagents/tester.md\n--\n");
    assert_snapshot!(new("Second"), @r"
    2
    --
    error: WORKSPACE/subagents/tester.md is there already, and stays as it is: edit it, or take another id
    ");
    let path = dir.path().join("subagents/tester.md");
    assert!(std::fs::read_to_string(&path).unwrap().contains("First"));
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    assert_snapshot!(said(&mainstem("agents new Tester --description x").run()), @r#"
    2
    --
    error: agent "Tester": invalid agent id "Tester": use a-z, 0-9, _ and -, starting with a letter or digit
    "#);
    assert_snapshot!(said(&mainstem("agents new tester --description").arg(" ").run()), @r#"
    2
    --
    error: agent "tester": the description is empty: say what the agent is for, the model chooses by it
    "#);
    assert_eq!(mainstem("agents new tester").run().code, Some(2));
    assert_eq!(mainstem("agents new ../tester --description x").run().code, Some(2));
}

/// A run shows the notes on files of other products once; what else is found, each time.
#[test]
fn notes_on_files_of_other_products_are_shown_once() {
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let cli = mainstem("run --foreign -m openai:m hi").within(folder.path());
        let cli = cli.env("HOME", folder.path().to_str().unwrap());
        cli.env("OPENAI_BASE_URL", "http://127.0.0.1:9").env("OPENAI_API_KEY", "k").run().stderr
    };
    let critic = "---\ndescription: A critic\ntools: Read, Bash\ncolor: red\n---\nYou criticise.\n";
    std::fs::create_dir_all(folder.path().join(".claude/agents")).unwrap();
    std::fs::write(folder.path().join(".claude/agents/critic.md"), critic).unwrap();
    let (first, second) = (run(), run());
    let check = |said: &str, foreign: bool| {
        assert_eq!(said.contains("names of Claude Code's tools"), foreign, "{said}");
        assert_eq!(said.contains("are shown once; `mainstem agents validate --foreign`"), foreign, "{said}");
        assert!(said.contains("lists tool \"shell\", which is off"), "{said}");
    };
    check(&first, true);
    check(&second, false);
}

#[test]
fn validate_points_out_everything() {
    let broken = |arguments: &str| {
        let cli = workspace(&format!("validate --trust {arguments}"));
        let cli = cli.file("subagents/a.md", "---\ndescription: a\nsteps: many\ntemperture: 1\n---\n");
        cli.file("other/b.md", "---\ndescription: b: c\n---\n")
    };
    assert_snapshot!(said(&broken("").run()), @r#"
    1
    ./subagents/a.md:3:8: error: expected a whole number, got "many"
    ./subagents/a.md:4:1: warning: unknown key "temperture"; did you mean "temperature"?
    ./subagents/reviewer.md:3:8: warning: agent "reviewer": model "openai:gpt-4o" can't be used: OPENAI_API_KEY is not set; set it, or set OPENAI_BASE_URL to a server that needs no key
    --
    1 error, 2 warnings
    "#);
    let skills = broken("").file("skills/pdf/SKILL.md", "---\nname: pdf\n---\nUse pdftk.\n").run();
    let missing = "./skills/pdf/SKILL.md:1:1: error: the description is missing: say when to use the skill";
    assert!(said(&skills).contains(missing), "{}", said(&skills));
    assert_snapshot!(said(&broken("other").run()), @r#"
    0
    other/b.md:2:14: warning: invalid YAML; interpreted as: description: "b: c"
    --
    0 errors, 1 warning
    "#);
    assert_snapshot!(said(&broken("other/b.md subagents/tester.md --strict").run()), @r#"
    1
    other/b.md:2:14: warning: invalid YAML; interpreted as: description: "b: c"
    --
    0 errors, 1 warning
    "#);
    assert_snapshot!(said(&broken("nowhere").run()), @r"
    2
    --
    error: nowhere: there is no such file, directory or agent
    ");
    assert_eq!(said(&broken("subagents/tester.md --strict").run()), "0\n--\n0 errors, 0 warnings\n");
    let foreign = workspace("validate --trust --foreign --strict").run();
    assert_snapshot!(said(&foreign), @r#"
    1
    ./.claude/agents/critic.md:3:8: warning: names of Claude Code's tools are read as ours: Read is read_file
    ./subagents/reviewer.md:3:8: warning: agent "reviewer": model "openai:gpt-4o" can't be used: OPENAI_API_KEY is not set; set it, or set OPENAI_BASE_URL to a server that needs no key
    --
    0 errors, 2 warnings
    "#);

    let done = broken("--output json subagents/a.md").run();
    let found: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(
        found[1],
        json!({
            "file": "subagents/a.md", "line": 4, "column": 1, "severity": "warning",
            "code": "unknown_key", "key": "temperture", "message": "unknown key \"temperture\"",
            "suggestion": "temperature", "help": null,
        })
    );
    assert_eq!((done.code, found[0]["severity"].as_str()), (Some(1), Some("error")));
}

/// What a run warns of, a check finds: with line, column and what was meant.
#[test]
fn validate_sees_what_a_run_sees() {
    let agent = |keys: &str| format!("---\ndescription: a\n{keys}\n---\nWork.\n");
    let workspace = |arguments: &str| {
        mainstem(&format!("agents validate --trust {arguments}"))
            .file("subagents/a.md", &agent("tools: [read_file, raed_file]\nskills: [pfd]"))
            .file("subagents/b.md", &agent("model: opnai:gpt-4o"))
            .file("subagents/c.md", &agent("mcp_servers:\n  - gti"))
            .file("subagents/d.md", &agent("model: openai:gpt-4o"))
            .file("skills/pdf/SKILL.md", "---\nname: pdf\ndescription: P\n---\nUse pdftk.\n")
            .file("mainstem.toml", "[mcp.git]\ncommand = \"git-mcp\"\n")
    };
    assert_snapshot!(said(&workspace("").run()), @r#"
    1
    ./subagents/a.md:3:20: warning: agent "a" lists tool "raed_file", which does not exist; known: edit_file, glob_files, grep_files, list_files, read_file, write_file, agent_spawn, agent_fanout, agent_send, agent_list, agent_close, task_output, task_wait, task_cancel, task_list; did you mean "read_file"?
    ./subagents/a.md:4:10: warning: agent "a" lists skill "pfd", which does not exist; known: pdf; did you mean "pdf"?
    ./subagents/b.md:3:8: error: agent "b": unknown model "opnai:gpt-4o"; known: demo, anthropic:…, azure:…, deepseek:…, gemini:…, groq:…, lmstudio:…, mistral:…, ollama:…, openai:…, openrouter:…, responses:…, together:…, vllm:…, xai:…; did you mean "openai:gpt-4o"?
    ./subagents/c.md:4:5: warning: agent "c" lists MCP server "gti", which is not configured; known: git; did you mean "git"?
    ./subagents/d.md:3:8: warning: agent "d": model "openai:gpt-4o" can't be used: OPENAI_API_KEY is not set; set it, or set OPENAI_BASE_URL to a server that needs no key
    --
    1 error, 4 warnings
    "#);
    let done = workspace("subagents/c.md --strict").run();
    assert_snapshot!(said(&done), @r#"
    1
    subagents/c.md:4:5: warning: agent "c" lists MCP server "gti", which is not configured; known: git; did you mean "git"?
    --
    0 errors, 1 warning
    "#);
    let done = workspace("--output json subagents/b.md").run();
    let found: Value = serde_json::from_str(&done.stdout).unwrap();
    let place = (&found[0]["line"], &found[0]["column"], &found[0]["key"], &found[0]["suggestion"]);
    assert_eq!(place, (&json!(3), &json!(8), &json!("model"), &json!("openai:gpt-4o")));
    assert_eq!(done.code, Some(1));
}

/// A tool that is off is not a tool that does not exist.
#[cfg(unix)]
#[test]
fn validate_and_a_run_say_how_a_tool_is_turned_on() {
    let server = crate::server::Server::start(|_| vec![crate::server::Step::Text("Yes.")]);
    let check = |settings: &str, tool: &str, expected: Option<&str>| {
        let file = format!("---\ndescription: a\ntools: [{tool}, agent_list]\n---\nWork.\n");
        let cli = |line: &str| {
            let cli = mainstem(line).file("subagents/a.md", &file).file("mainstem.toml", settings);
            cli.env("OPENAI_BASE_URL", &server.url())
        };
        let expected = expected.map(|remedy| {
            format!(
                "./subagents/a.md:3:9: warning: agent \"a\" lists tool {tool:?}, which is off; {remedy}\n"
            )
        });
        let done = cli("agents validate --trust").run();
        assert_eq!((done.code, done.stdout), (Some(0), expected.clone().unwrap_or_default()), "{settings}");
        let run = cli("run --trust --progress plain Hi").run();
        assert!(run.stderr.contains(&expected.unwrap_or_default()), "{settings} {run:?}");
        assert!(!run.stderr.contains("does not exist"), "{settings} {run:?}");
    };
    check("", "shell", Some("turn it on with --shell, or with shell = true in mainstem.toml"));
    check("shell = true", "shell", None);
    let generate = "turn it on with --agent-generate, or with agent_generate = true in mainstem.toml";
    check("", "agent_generate", Some(generate));
    check("files = false", "read_file", Some("./mainstem.toml turns off the tools for files"));
    check("", "read_file", None);
}

/// A tool that is denied and does not exist is a tool that is not denied.
#[test]
fn validate_and_a_run_name_tools_that_can_not_be_denied() {
    let file = "---\ndescription: a\ndisallowed_tools: [shell, plan_exit, mcp__git__*, wirte_file, agent_*]\n---\nWork.\n";
    let done = mainstem("agents validate").file("subagents/a.md", file).run();
    let known = "known: edit_file, glob_files, grep_files, list_files, read_file, write_file, agent_spawn, agent_fanout, \
                 agent_send, agent_list, agent_close, task_output, task_wait, task_cancel, task_list";
    let warning = format!(
        "./subagents/a.md:3:51: warning: agent \"a\" disallows tool \"wirte_file\", which does not exist; {known}; did you mean \"write_file\"?"
    );
    assert_eq!((done.code, &*done.stdout), (Some(0), &*format!("{warning}\n")), "{done:?}");
    let strict = mainstem("agents validate --strict").file("subagents/a.md", file).run();
    assert_eq!(strict.code, Some(1));
    let server = crate::server::Server::start(|_| vec![crate::server::Step::Text("Yes.")]);
    let run = mainstem("run -m openai:m --progress plain Hi").file("subagents/a.md", file);
    let run = run.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456").run();
    assert!(run.stderr.contains(&warning), "{run:?}");
}

/// A rule about a tool that does not exist protects nothing.
#[test]
fn validate_and_a_run_name_rules_with_typing_errors() {
    let file = "---\ndescription: a\npermissions:\n  wirte_file: deny\n  mcp__git__push: deny\n  nuke: deny\n  \"*\": ask\n---\nWork.\n";
    let done = mainstem("agents validate").file("subagents/a.md", file).run();
    assert_eq!((done.code, done.stdout.lines().count()), (Some(0), 1), "{done:?}");
    assert!(done.stdout.starts_with("./subagents/a.md:4:3: warning: agent \"a\" has a rule about tool \"wirte_file\", which does not exist;"), "{done:?}");
    assert!(done.stdout.ends_with("did you mean \"write_file\"?\n"), "{done:?}");

    let server = crate::server::Server::start(|_| vec![crate::server::Step::Text("Yes.")]);
    let run = mainstem("run -m openai:m --progress plain Hi");
    let run = run.file(
        "mainstem.toml",
        "[permissions]\ndeny = [\"wriite_file\", \"nuke\", \"shell\", \"raed_file(x)\"]\n",
    );
    let run = run.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456").run();
    let warnings: Vec<_> = run.stderr.lines().filter(|line| line.contains("which does not exist")).collect();
    let (whole, part) = (
        "the rule \"wriite_file\" is about tool \"wriite_file\", which does not exist; did you mean \"write_file\"?",
        "the rule \"raed_file(x)\" is about tool \"raed_file\", which does not exist; did you mean \"read_file\"?",
    );
    let names = |rule: &str| warnings.iter().any(|warning| warning.contains(rule));
    assert!(warnings.len() == 2 && names(whole) && names(part), "{run:?}");
    assert!(run.stderr.contains("mainstem.toml: the rule"), "{run:?}");
}

/// So does a rule about an argument that its tool does not have.
#[test]
fn validate_and_a_run_name_rules_about_arguments_that_do_not_exist() {
    let file = "---\ndescription: a\npermissions:\n  \"write_file(pth: a.txt)\": deny\n  \"write_file(path: b)\": deny\n---\nWork.\n";
    let done = mainstem("agents validate").file("subagents/a.md", file).run();
    let expected = "./subagents/a.md:4:3: warning: agent \"a\" has the rule \"write_file(pth: a.txt)\" about argument \
                    \"pth\", which its tool does not have; known: path, content; did you mean \"path\"?\n";
    assert_eq!((done.code, &*done.stdout), (Some(0), expected), "{done:?}");

    let server = crate::server::Server::start(|_| vec![crate::server::Step::Text("Yes.")]);
    let rules = "[permissions]\ndeny = [\"write_file(pth: a.txt)\", \"write_file(path: b)\", \"shell(git *)\"]\nallow = [\"shell(path: .git/**)\"]\n";
    let run =
        mainstem("run --shell Hi").file("mainstem.toml", rules).env("OPENAI_BASE_URL", &server.url()).run();
    let warning = "the rule \"write_file(pth: a.txt)\" is about argument \"pth\" of tool \"write_file\", which has \
                   no such argument; known: path, content";
    assert!(run.stderr.contains(warning) && run.stderr.matches("the rule").count() == 1, "{run:?}");
}

/// Without the file of the leading agent, or a key of it that narrows, a run could do more than was
/// meant.
#[test]
fn nothing_runs_without_the_rules_of_the_leading_agent() {
    let server = crate::server::Server::start(|_| vec![crate::server::Step::Text("Yes.")]);
    let check = |main: &str, expected: &str| {
        let file = format!("---\ndescription: leads\n{main}---\nLead.\n");
        for line in ["run Hi", "chat", "serve --bind 127.0.0.1:0", "mcp"] {
            let cli = mainstem(line).file("subagents/main.md", &file);
            let done = cli.env("OPENAI_BASE_URL", &server.url()).run();
            assert_eq!(done.code, Some(3), "{line}: {done:?}");
            assert!(done.stderr.contains(expected), "{line}: {done:?}");
        }
    };
    check(
        "permissions:\n  write_file: deny\nsteps: zero\n",
        "agent \"main\" is left out: ./subagents/main.md:5:8:",
    );
    // A rule of the file counts although its model is not known here.
    let cli = mainstem("run -m openai:m Hi")
        .file("subagents/main.md", "---\ndescription: leads\nmodel: none:such\n---\nLead.\n");
    assert_eq!(cli.env("OPENAI_BASE_URL", &server.url()).run().code, Some(0));
    let asked = server.requests().pop().unwrap();
    assert!(asked["messages"][0].to_string().contains("Lead."), "{asked}");
    check("permisions:\n  write_file: deny\n", "unknown key \"permisions\"");
    check("disalowed_tools: shell\n", "unknown key \"disalowed_tools\"");
    assert_eq!(server.requests().len(), 1);
    // Another agent may lead.
    let cli = mainstem("run -a other Hi").file("subagents/main.md", "---\nsteps: zero\n---\n");
    let cli = cli.file("subagents/other.md", "---\ndescription: leads\n---\nLead.\n");
    assert_eq!(cli.env("OPENAI_BASE_URL", &server.url()).run().code, Some(0));
}

#[test]
fn validate_finds_agents_that_only_spawn_one_another() {
    let agent = "---\ndescription: a\ntools: [agent_spawn]\npermissions:\n  agent_spawn(general-purpose): deny\n---\nDelegate.\n";
    let workspace =
        mainstem("agents validate --strict").file("subagents/a.md", agent).file("subagents/b.md", agent);
    assert_snapshot!(said(&workspace.run()), @r#"
    1
    ./subagents/a.md:3:1: warning: agent "a" can only spawn, and reaches no agent with a tool to work with; it may spawn: a, b
    ./subagents/b.md:3:1: warning: agent "b" can only spawn, and reaches no agent with a tool to work with; it may spawn: a, b
    --
    0 errors, 2 warnings
    "#);
}

#[test]
fn the_workspace_is_found_as_for_run() {
    let path = example();
    let listed = |cli: Cli| {
        let done = cli.run();
        assert_eq!(done.code, Some(0), "{done:?}");
        done.stdout.contains("reviewer")
    };
    assert!(listed(mainstem("agents list -w").arg(&path)));
    assert!(listed(mainstem("agents -w").arg(&path).arg("list")));
    assert!(listed(mainstem("agents list").env("MAINSTEM_WORKSPACE", path.to_str().unwrap())));
    let file = format!("workspace = {:?}", path.to_str().unwrap());
    assert!(listed(mainstem("agents list --trust").file("mainstem.toml", &file)));
    assert!(!listed(mainstem("agents list")));
    let done = mainstem("agents validate -w nowhere").run();
    assert_eq!(said(&done), "3\n--\nerror: --workspace: workspace \"nowhere\" is not a directory\n");
    assert_eq!(mainstem("agents validate -w").arg(&path).arg("--strict").run().code, Some(0));
}

#[test]
fn the_first_files_of_a_folder_are_created_and_work() {
    let dir = tempfile::tempdir().unwrap();
    let run = |line: &str| mainstem(line).within(dir.path()).run();
    let done = run("init");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.stdout.starts_with("created mainstem.toml\ncreated subagents/researcher.md\ncreated check.sh\n")
    );
    let check = std::process::Command::new(dir.path().join("check.sh"))
        .env_clear()
        .env("HOME", dir.path())
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", env!("CARGO_BIN_EXE_mainstem").trim_end_matches("/mainstem")),
        )
        .output()
        .unwrap();
    assert!(check.status.success(), "{check:?}");
    assert!(run("agents list").stdout.contains("researcher"));

    std::fs::write(dir.path().join("mainstem.toml"), "max_turns = 3\n").unwrap();
    std::fs::write(dir.path().join("Cargo.toml"), "[package]\n").unwrap();
    let again = run("init");
    assert!(
        again.stdout.starts_with(
            "exists:  mainstem.toml\nexists:  subagents/researcher.md\ncreated tests/agents.rs\n"
        ),
        "{again:?}"
    );
    assert!(again.stdout.contains("[dev-dependencies]"), "{again:?}");
    assert_eq!(std::fs::read_to_string(dir.path().join("mainstem.toml")).unwrap(), "max_turns = 3\n");
    let elsewhere = run("init new/fleet");
    assert!(elsewhere.stdout.contains("next, in new/fleet: `mainstem agents list`"), "{elsewhere:?}");
    assert!(dir.path().join("new/fleet/subagents/researcher.md").exists());
    assert_eq!(run("init mainstem.toml").code, Some(2));

    // The example is tested with the others.
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/first");
    let text = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap();
    for name in ["subagents/researcher.md", "tests/agents.rs"] {
        assert_eq!(text(dir.path().join(name)), text(example.join(name)), "{name}");
    }
}
