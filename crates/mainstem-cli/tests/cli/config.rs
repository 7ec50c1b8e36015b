//! Configuration and workspaces: what is said about them where they can't be used.

use serde_json::json;

use crate::{
    server::{Server, Step},
    support::{Cli, demo, mainstem},
};

fn check(cli: Cli, expected: &str) {
    let done = cli.run();
    assert_eq!((done.code, &*done.stderr), (Some(3), expected));
}

#[test]
fn errors_have_their_place() {
    let with = |text| mainstem("run -m demo Hi").file("mainstem.toml", text);
    check(
        with("max_turn = 3"),
        "error: ./mainstem.toml:1:1: unknown key `max_turn`; did \
         you mean `max_turns`?\n",
    );
    check(
        with("[providers.openai]\napi_key = \"sk-123\""),
        "error: ./mainstem.toml:2:11: keys are not allowed in a file: put it into an environment variable, and the name of that \
         into `api_key_env`\n",
    );
    let user = mainstem("run -m demo Hi").file(".config/mainstem/config.toml", "model = ");
    let done = user.run();
    assert!(done.stderr.contains("/.config/mainstem/config.toml:1:9: "), "{done:?}");
    check(mainstem("run --config no.toml Hi"), "error: no.toml: there is no such file\n");
}

#[test]
fn urls_and_workspaces_are_named_with_who_said_them() {
    let wrong = "the base URL \"localhost\" can't be used: it must begin with http:// or https://, such as \"http://localhost\"";
    let from_env = mainstem("run Hi").env("OPENAI_BASE_URL", "localhost");
    check(from_env, &format!("error: OPENAI_BASE_URL: {wrong}\n"));
    let from_file =
        mainstem("run --trust Hi").file("mainstem.toml", "[providers.openai]\nbase_url = 'localhost'");
    check(from_file, &format!("error: ./mainstem.toml: {wrong}\n"));
    let url = "http://127.0.0.1:9/v1";
    check(
        mainstem("run -w nowhere Hi").env("OPENAI_BASE_URL", url),
        "error: --workspace: workspace \"nowhere\" is not a directory\n",
    );
    check(
        mainstem("run Hi").env("OPENAI_BASE_URL", url).env("MAINSTEM_WORKSPACE", "x"),
        "error: MAINSTEM_WORKSPACE: workspace \"x\" is not a directory\n",
    );
}

/// The numbers of `[repetition]` count, for children, too.
#[test]
fn an_agent_that_repeats_itself_ends_by_the_numbers_of_the_file() {
    #[track_caller]
    fn check(text: &str, calls: usize, hints: usize) {
        let server = Server::start(|request| {
            let asked = request["messages"].as_array().unwrap();
            match asked[0]["content"].as_str().unwrap().contains("You are a subagent") {
                true => vec![Step::Call(vec![("list_files", json!({}))])],
                false if asked.len() > 2 => vec![Step::Text("It failed.")],
                false => {
                    vec![Step::Call(vec![("agent_spawn", json!({ "agent_id": "kid", "task": "Look." }))])]
                }
            }
        });
        let cli = mainstem("run --progress quiet --output ndjson Hi").env("OPENAI_BASE_URL", &server.url());
        let cli = cli
            .file("mainstem.toml", text)
            .file("subagents/kid.md", "---\ndescription: A kid\nsteps: 14\n---\n");
        let done = cli.run();
        assert_eq!(done.code, Some(0), "{done:?}");
        let told =
            done.stdout.lines().filter(|line| line.contains("\"no_progress\"") && line.contains("HINT"));
        let all = (server.requests().len() - 2, told.count());
        assert_eq!(all, (calls, hints), "{text}: {done:?}");
    }
    check("", 10, 1);
    check("[repetition]\ntold = 2\nended = 4\nlongest = 1", 4, 1);
    // Its limit of steps, then an answer without tools.
    check("[repetition]\ntold = 0\nended = 0", 15, 0);
}

#[test]
fn broken_agents_are_pointed_out_and_left_out() {
    let server = Server::start(|_| vec![Step::Text("Hello.")]);
    let cli = mainstem("run --progress quiet Hi").env("OPENAI_BASE_URL", &server.url());
    let cli = cli.file("subagents/a.md", "---\ndescription: A\nsteps: many\n---\n");
    let cli = cli.file("subagents/b.md", "---\ndescription: B\ntemperture: 1\n---\n");
    let cli = cli.file("subagents/c.md", "---\ndescription: C\nmodel: nope:x\n---\n");
    let done = cli.run();
    assert_eq!((done.code, &*done.stdout), (Some(0), "Hello.\n"), "{done:?}");
    let mut lines: Vec<_> = done.stderr.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "./subagents/a.md:3:8: error: expected a whole number, got \"many\"",
            "./subagents/b.md:3:1: warning: unknown key \"temperture\"; did you mean \"temperature\"?",
            "./subagents/c.md:3:8: error: agent \"c\": unknown model \"nope:x\"; known: demo, anthropic:…, azure:…, deepseek:…, gemini:…, groq:…, lmstudio:…, mistral:…, ollama:…, openai:…, openrouter:…, responses:…, together:…, vllm:…, xai:…",
        ]
    );
}

#[test]
fn a_file_chooses_model_server_key_and_headers() {
    let server =
        Server::start(|request| vec![Step::Text(if request["model"] == "qwen3" { "Yes." } else { "No." })]);
    let text = format!(
        "model = 'openai:qwen3'\n[providers.openai]\nbase_url = '{}'\napi_key_env = 'MY_KEY'\nheaders = {{ x-team = '${{TEAM}}' }}",
        server.url()
    );
    let with = |cli: Cli| cli.file("mainstem.toml", &text).env("TEAM", "blue").run();
    let done = with(mainstem("run --trust --progress quiet Hi").env("MY_KEY", "k"));
    assert_eq!((done.code, &*done.stdout), (Some(0), "Yes.\n"), "{done:?}");
    let done = with(mainstem("run --trust --progress quiet Hi"));
    assert_eq!(done.stderr, "error: ./mainstem.toml: the variable MY_KEY for the key is not set\n");
    assert_eq!(server.requests().len(), 1);
    assert_eq!(server.requests()[0]["messages"][1], json!({ "role": "user", "content": "Hi" }));
}

#[test]
fn attached_files_are_sent_with_the_prompt() {
    let server = Server::start(|_| vec![Step::Text("A dot.")]);
    let with = |line: &str| {
        let cli = mainstem(line).env("OPENAI_BASE_URL", &server.url());
        cli.file("notes.txt", "Look closely.").file("empty", "").file("dot.gif", "GIF89a\x01\0").run()
    };
    let done = with("run --progress quiet -m openai:m --attach dot.gif --attach notes.txt Describe");
    assert_eq!((done.code, &*done.stdout), (Some(0), "A dot.\n"), "{done:?}");
    let sent = json!([
        { "type": "text", "text": "Describe" },
        { "type": "text", "text": "\n\nThe file `dot.gif`:\n\n" },
        { "type": "image_url", "image_url": { "url": "data:image/gif;base64,R0lGODlhAQA=" } },
        { "type": "text", "text": "\n\nThe file `notes.txt`:\n\nLook closely." },
    ]);
    assert_eq!(server.requests()[0]["messages"][1]["content"], sent);
    let done = with("run -m openai:m --attach empty Describe");
    assert_eq!(
        (done.code, &*done.stderr),
        (Some(2), "error: --attach empty: the file is empty\n"),
        "{done:?}"
    );
    let done = with("run -m demo --attach notes.txt");
    assert_eq!(done.code, Some(2), "{done:?}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn options_of_models_are_sent_and_an_agents_own_win() {
    let server = Server::start(|_| vec![Step::Text("Hi.")]);
    let file = "effort = 'low'\nmax_output_tokens = 2048";
    let agent = "---\ndescription: d\neffort: high\n---\nWork.\n";
    let with = |line: &str| {
        let cli = mainstem(line).env("OPENAI_BASE_URL", &server.url()).file("mainstem.toml", file);
        let done = cli.file("subagents/own.md", agent).run();
        assert_eq!(done.code, Some(0), "{done:?}");
        let request = server.requests().pop().unwrap();
        ["reasoning_effort", "max_tokens"].map(|name| request[name].clone())
    };
    assert_eq!(with("run Hi"), [json!("low"), json!(2048)]);
    assert_eq!(with("run --effort medium --max-output-tokens 9 Hi"), [json!("medium"), json!(9)]);
    assert_eq!(with("run --effort medium -a own Hi"), [json!("high"), json!(2048)]);
    let run =
        |line: &str| mainstem(line).env("OPENAI_BASE_URL", &server.url()).file("mainstem.toml", file).run();
    let done = run("run --thinking-budget 9 Hi");
    assert_eq!((done.code, &*done.stdout), (Some(0), "Hi.\n"), "there is an effort: {done:?}");
    let done = run("run --thinking-budget 2048 Hi");
    let why =
        "thinking_budget must be below max_output_tokens, which counts thinking: 2048 is not below 2048";
    assert_eq!((done.code, done.stderr), (Some(3), format!("error: --thinking-budget: {why}\n")));
}

#[test]
fn the_demo_needs_no_workspace() {
    let done = demo("-w nowhere --progress quiet").run();
    let error = "error: --workspace: workspace \"nowhere\" is not a directory\n";
    assert_eq!((done.code, &*done.stderr), (Some(3), error), "a wrong path is no path");
    let done = demo("-w . --shell --effort low --progress quiet").run();
    assert_eq!(done.code, Some(0));
    assert_eq!(
        done.stderr,
        "warning: the demo brings its own agents; --workspace is not used\n\
         warning: the demo brings its own tools; --shell is not used\n\
         warning: the demo brings its own models; --effort is not used\n"
    );
}

#[test]
fn agents_of_other_products_run_if_that_is_wanted() {
    let server = Server::start(|_| vec![Step::Text("Hi.")]);
    let agent = "---\nname: critic\ndescription: Criticises\n---\nBe strict.\n";
    for (args, code) in [("run --foreign -a critic Hi", 0), ("run -a critic Hi", 2)] {
        let cli =
            mainstem(args).env("OPENAI_BASE_URL", &server.url()).file(".claude/agents/critic.md", agent);
        let done = cli.run();
        assert_eq!(done.code, Some(code), "{done:?}");
    }
    assert!(server.requests()[0].to_string().contains("Be strict."));
}

#[test]
fn tools_are_those_of_a_run_with_the_same_flags() {
    let tools = |flags: &str| mainstem(&format!("tools {flags}")).run().stdout;
    let has =
        |flags: &str, name: &str| tools(flags).lines().any(|line| line.starts_with(&format!("{name} ")));
    assert!(has("", "read_file") && !has("--no-files", "read_file"));
    assert!(has("--agent-generate", "agent_generate") && !has("", "agent_generate"));
    #[cfg(unix)]
    assert!(has("--shell", "shell") && !has("", "shell"));
}

#[test]
fn what_is_set_is_shown_with_its_origin_and_without_secrets() {
    let user = "\
max_turns = 9
[permissions]
changes = 'ask'
deny = ['shell(rm *)']
[providers.openai]
base_url = 'http://me:secret@localhost:1/v1'
api_key_env = 'MY_KEY'
headers = { X-Team = 'secret' }
";
    let cli = |line: &str| {
        let cli = mainstem(line).file(".config/mainstem/config.toml", user);
        let cli = cli
            .file("mainstem.toml", "model = 'demo'\nmax_turns = 7\nshell = true\n[budget]\ntokens = 5_000\n");
        cli.env("MAINSTEM_WORKSPACE", ".").run()
    };
    let shown = cli("config show --origin --child-wait 90s");
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stderr.contains("lets agents run commands"), "it is not in effect: {shown:?}");
    assert!(!shown.stdout.contains("secret"), "{shown:?}");
    let rows: Vec<Vec<&str>> = shown.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let check = |key: &str, value: &str, origin: &str| {
        let row = rows.iter().find(|row| row[0] == key).unwrap_or_else(|| panic!("no {key}: {shown:?}"));
        assert_eq!(row[1], value, "{key}");
        assert!(row[2..].join(" ").ends_with(origin), "{row:?}");
    };
    check("model", "\"demo\"", "mainstem.toml");
    check("max_turns", "7", "mainstem.toml");
    check("workspace", "\".\"", "MAINSTEM_WORKSPACE");
    check("limits.wait", "\"1m", "--child-wait");
    check("budget.tokens", "5000", "mainstem.toml");
    check("permissions.changes", "\"ask\"", "");
    check("permissions.deny", "\"shell(rm", "config.toml");
    check("providers.openai.api_key_env", "\"MY_KEY\"", "config.toml");
    check("providers.openai.headers.X-Team", "set", "config.toml");
    assert!(!shown.stdout.contains("shell  "), "{shown:?}");

    let plain = cli("config show").stdout;
    assert!(plain.contains("max_turns") && !plain.contains("mainstem.toml"), "{plain}");
    let json: serde_json::Value = serde_json::from_str(&cli("config show --output json").stdout).unwrap();
    let value = |key: &str| {
        let all = json.as_array().unwrap();
        &all.iter().find(|one| one["key"] == key).unwrap_or_else(|| panic!("no {key}: {json}"))["value"]
    };
    assert_eq!((value("model"), value("max_turns")), (&"demo".into(), &7.into()));
    // What may be secret has no value.
    assert_eq!(value("providers.openai.headers.X-Team"), &serde_json::Value::Null);
    assert_eq!(mainstem("config show").run().stderr, "no settings\n");
}
