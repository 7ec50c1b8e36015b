//! MCP servers from the command line: `tools`, `doctor`, and a run that calls one.

use mainstem::model::{ScriptedModel, scripted::Turn};
use mainstem_testing::ModelServer;
use serde_json::json;

use crate::support::{Cli, Done, mainstem};

/// A server of one tool, which notes that it was started. Ids are the only thing that it reads of a
/// request besides its method.
const SERVER: &str = r#"
echo started >> starts
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"greet","description":"Greets\nat length","inputSchema":{"type":"object","properties":{"whom":{"type":"string"}}}}]}' ;;
    *'"tools/call"'*) result='{"content":[{"type":"text","text":"Hello from the shell."}]}' ;;
    *'"notifications/'*) continue ;;
    *) printf '%s\n' "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"no such method\"}}"; continue ;;
  esac
  printf '%s\n' "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$result}"
done
"#;

const CONFIG: &str = "[mcp.sh]\ncommand = 'sh'\nargs = ['server.sh']\n";

fn with_server(line: &str) -> Cli {
    mainstem(line).arg("--trust").file("server.sh", SERVER).file("mainstem.toml", CONFIG)
}

/// Runs the command while a server plays the script of `main`.
fn run(cli: Cli, turns: Vec<Turn>) -> Done {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let model = ScriptedModel::new().agent("main", turns);
    let server = runtime.block_on(ModelServer::start(model)).unwrap();
    cli.env("OPENAI_BASE_URL", &server.base_url()).run()
}

#[test]
fn tools_lists_those_of_servers() {
    let done = with_server("tools").run();
    assert_eq!((done.code, &*done.stderr), (Some(0), ""), "{done:?}");
    assert!(done.stdout.lines().any(|line| line == "mcp__sh__greet  mcp sh    Greets"), "{done:?}");
    let done = with_server("tools --output json").run();
    let tools: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let greet = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "mcp__sh__greet").unwrap();
    assert_eq!(greet["parameters"]["properties"], json!({"whom": {"type": "string"}}));
    assert_eq!((&greet["from"], &greet["read_only"]), (&json!("mcp sh"), &json!(false)));
    let kid = "---\ndescription: A kid\ntools: read_file, mcp__sh__*\n---\n";
    let done = with_server("tools -a kid").file("subagents/kid.md", kid).run();
    let names: Vec<_> = done.stdout.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["mcp__sh__greet", "read_file"], "{done:?}");
    let done = with_server("tools -a kit").file("subagents/kid.md", kid).run();
    assert_eq!(
        (done.code, &*done.stderr),
        (
            Some(2),
            "error: --agent: unknown agent \"kit\"; known: general-purpose, kid; did you mean \"kid\"?\n"
        )
    );
}

#[test]
fn a_run_calls_a_servers_tool() {
    let call = Turn::new().call("mcp__sh__greet", json!({"whom": "me"}));
    let done =
        run(with_server("run -m openai:main --output ndjson go"), vec![call, Turn::new().text("Greeted.")]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("Hello from the shell."), "{done:?}");
    assert!(!done.stderr.contains("warning"), "what is trusted is not warned of: {done:?}");
}

#[test]
fn a_server_that_fails_is_said_while_the_run_goes_on() {
    let cli =
        mainstem("run --trust -m openai:main go").file("mainstem.toml", "[mcp.none]\ncommand = './none'\n");
    let done = run(cli, vec![Turn::new().text("Without it.")]);
    assert_eq!((done.code, &*done.stdout), (Some(0), "Without it.\n"));
    let error = "error: the MCP server \"none\" can't be used: `./none` does not start: No such file or directory (os error 2)";
    assert_eq!(done.stderr.matches(error).count(), 1, "{done:?}");
    let tools = mainstem("tools --trust").file("mainstem.toml", "[mcp.none]\ncommand = './none'\n").run();
    assert!(
        tools.code == Some(3) && tools.stderr.contains(error) && tools.stdout.contains("read_file"),
        "{tools:?}"
    );
}

#[test]
fn doctor_starts_servers_only_online() {
    let done = with_server("doctor -m demo").run();
    assert!(
        done.stdout.contains("· MCP server sh: `sh server.sh` (./mainstem.toml), not started\n"),
        "{done:?}"
    );
    let done = with_server("doctor -m demo --online").run();
    assert!(done.code == Some(0) && done.stdout.contains("✔ MCP server sh: 1 tool\n"), "{done:?}");
    let done = mainstem("doctor --trust -m demo --online")
        .file("mainstem.toml", "[mcp.none]\ncommand = './none'\n")
        .run();
    let fix = "✘ the MCP server \"none\" can't be used: `./none` does not start: No such file or directory (os error 2)\n    \
               fix: try `./none` by hand, or correct [mcp.none]\n";
    assert!(done.code == Some(3) && done.stdout.contains(fix), "{done:?}");
}

#[test]
fn a_file_holds_no_secret_and_no_nonsense() {
    #[track_caller]
    fn check(config: &str, expected: &str) {
        let done = mainstem("tools --trust").file("mainstem.toml", config).run();
        assert_eq!((done.code, &*done.stderr), (Some(3), &*format!("error: {expected}\n")), "{config}");
    }
    check(
        "files = true\n[mcp.x]\nurl = 'http://a'\nheaders = { Authorization = 'Bearer abc' }",
        "./mainstem.toml:2:1: secrets are not allowed in a file: write `${MY_KEY}` for Authorization of MCP server \"x\"",
    );
    check(
        "[mcp.x]\nurl = 'http://a'\ncommand = 'b'",
        "./mainstem.toml:1:1: it has both `command` and `url`; remove one",
    );
    check(
        "[mcp.'a b']\ncommand = 'b'",
        "[mcp] in the configuration: \"a b\" is not a valid name for an MCP server: use at most 32 letters, digits, - and single _",
    );
}
