//! What the terminal says about a mistake, and what it suggests.

use crate::support::{Cli, mainstem};

/// A command, with a key and a server that refuses connections.
fn cli(line: &str) -> Cli {
    mainstem(line).env("OPENAI_API_KEY", "k").env("OPENAI_BASE_URL", "http://127.0.0.1:9")
}

/// Checks the last line of stderr.
#[track_caller]
fn check(cli: Cli, code: i32, last: &str) {
    let done = cli.run();
    let said = done.stderr.trim_end().lines().last().unwrap_or_default();
    assert_eq!((done.code, said), (Some(code), last), "{done:?}");
}

#[test]
fn names_are_suggested() {
    let known = "known: demo, anthropic:…, azure:…, deepseek:…, gemini:…, groq:…, lmstudio:…, mistral:…, ollama:…, openai:…, openrouter:…, responses:…, together:…, vllm:…, xai:…";
    for (name, near) in [
        ("demoo", Some("demo")),
        ("opnai:gpt-4o", Some("openai:gpt-4o")),
        ("OpenAI:gpt-4o", Some("openai:gpt-4o")),
        ("gtp-4o", Some("gpt-4o")),
        ("cluade-haiku-4-5", Some("claude-haiku-4-5")),
        ("gpt", None),
        ("davinci", None),
    ] {
        let near = near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
        let expected = format!("error: --model: unknown model \"{name}\"; {known}{near}");
        check(cli(&format!("run -m {name} Hi")), 3, &expected);
    }
    let why = "ANTHROPIC_API_KEY is not set; set it, or set ANTHROPIC_BASE_URL to a server that needs no key";
    let expected = format!("error: --model: model \"claude-x\" can't be used: {why}");
    check(cli("run -m claude-x Hi"), 3, &expected);
    let agent = "---\ndescription: d\n---\nWork.\n";
    for line in ["run -a mian Hi", "tools -a mian"] {
        let cli = cli(line).file("subagents/main.md", agent);
        let expected =
            "error: --agent: unknown agent \"mian\"; known: general-purpose, main; did you mean \"main\"?";
        check(cli, 2, expected);
    }
    let done = mainstem("rnu").run();
    assert!(done.stderr.contains("tip: a similar subcommand exists: 'run'"), "{done:?}");
    let done = mainstem("fix the bug").run();
    assert!(done.stderr.contains("tip: to give an agent a task, use 'mainstem run \"TASK\"'"), "{done:?}");
}

#[test]
fn a_cause_is_told_once() {
    let why = "OPENAI_API_KEY is not set; set it, or set OPENAI_BASE_URL to a server that needs no key";
    check(
        mainstem("run -m openai:gpt-4o-mini Hi"),
        3,
        &format!("error: --model: model \"openai:gpt-4o-mini\" can't be used: {why}"),
    );
}

/// An agent at a private address, and one whose file has an error.
fn left_out(line: &str) -> Cli {
    cli(line)
        .file("subagents/remote.md", "---\ndescription: r\nurl: http://10.0.0.1/a\n---\n")
        .file("subagents/wrong.md", "---\ndescription: w\nsteps: 0\n---\nWork.\n")
        .file("subagents/main.md", "---\ndescription: d\n---\nWork.\n")
}

#[test]
fn an_agent_that_is_left_out_is_named_with_the_reason() {
    let remote = "./subagents/remote.md:3:1: error: agent \"remote\": url: http://10.0.0.1/a: 10.0.0.1 is not a public address; `remote_hosts` allows this host";
    let wrong = "./subagents/wrong.md:3:8: error: steps must be at least 1";
    check(left_out("agents list"), 0, remote);
    check(left_out("agents show remote"), 0, remote);
    check(left_out("agents validate remote"), 1, "1 error, 0 warnings");
    check(left_out("agents validate wrong main"), 1, "1 error, 0 warnings");
    check(left_out("agents validate"), 1, "2 errors, 0 warnings");
    check(
        left_out("agents validate nothing"),
        2,
        "error: nothing: there is no such file, directory or agent",
    );
    let listed = left_out("agents list").run();
    assert!(listed.stderr.contains(wrong) && !listed.stdout.contains("remote"), "{listed:?}");
    assert!(left_out("doctor").run().stdout.contains("2 agents in files, 2 errors"));
    let why = "agent \"remote\" is left out: ./subagents/remote.md:3:1: agent \"remote\": url: http://10.0.0.1/a: 10.0.0.1 is not a public address; `remote_hosts` allows this host";
    for line in
        ["run --trust -a remote Hi", "run --trust -m openai:m -a remote Hi", "tools --trust -a remote"]
    {
        check(left_out(line), 2, &format!("error: --agent: {why}"));
    }
    let why = "agent \"wrong\" is left out: ./subagents/wrong.md:3:8: steps must be at least 1";
    for line in ["run --trust -a wrong Hi", "run --trust -m openai:m -a wrong Hi", "tools --trust -a wrong"] {
        check(left_out(line), 2, &format!("error: --agent: {why}"));
    }
    // Other agents run.
    let run = left_out("run --trust -a main --timeout 1ms Hi").run();
    assert!(run.stderr.contains(remote), "{run:?}");
}

#[test]
fn what_is_missing_is_told_in_lines() {
    let done = mainstem("run Hi").run();
    let expected = "error: no model is configured\n\
         set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or OLLAMA_HOST: each chooses its provider and a default model\n\
         (`mainstem models` lists more);\n\
         for a local server, set OPENAI_BASE_URL and choose a model by -m, MAINSTEM_MODEL or `model` in ./mainstem.toml\n\
         or play the demo: `mainstem run -m demo`\n";
    assert_eq!((done.code, &*done.stderr), (Some(3), expected));
    let chosen = "VLLM_BASE_URL sets up vllm, which has no default model; choose one with `-m vllm:MODEL`";
    for line in ["run Hi", "serve", "mcp", "doctor"] {
        let done = mainstem(line).env("VLLM_BASE_URL", "http://127.0.0.1:1/v1").run();
        let said = done.stdout.clone() + &done.stderr;
        assert!(done.code == Some(3) && said.contains(chosen), "{line}: {done:?}");
    }
}

#[test]
fn values_and_keys_are_corrected() {
    for (time, what) in [("5", "a unit is missing"), ("1x", "unknown unit `x`"), ("", "invalid time")] {
        let done = mainstem("run Hi --timeout").arg(time).run();
        let expected = format!("{what}; write it like 90s, 5m or 1h 30m\n");
        assert!(done.code == Some(2) && done.stderr.contains(&expected), "{done:?}");
    }
    for (text, what) in [
        ("modle = 'x'", "1:1: unknown key `modle`; did you mean `model`?"),
        ("model =", "1:8: a value is missing"),
        ("model = # the model", "1:9: a value is missing"),
        (
            "[limits]\nzzz = 1",
            "2:1: unknown key `zzz`; known: max_depth, max_children, max_tasks, wait, idle",
        ),
    ] {
        check(cli("run Hi").file("mainstem.toml", text), 3, &format!("error: ./mainstem.toml:{what}"));
    }
    let done = cli("attach http://h:1").run();
    let why = "this is an address, not a session; write `mainstem attach --server http://h:1 SESSION`";
    let expected = format!("error: invalid value 'http://h:1' for '<SESSION>': {why}\n");
    assert!(done.code == Some(2) && done.stderr.starts_with(&expected), "{done:?}");
}

#[test]
fn an_empty_list_is_told_and_empty_for_programs() {
    for (line, what, json) in [
        ("sessions list", "sessions", "[]"),
        ("tasks list", "tasks", "[]"),
        ("trust list", "trusted folders", "{}"),
    ] {
        let done = mainstem(line).run();
        assert_eq!((&*done.stdout, &*done.stderr), ("", &*format!("no {what}\n")));
        let done = mainstem(&format!("{line} --output json")).run();
        assert_eq!((done.stdout.trim_end(), &*done.stderr), (json, ""));
    }
}

#[test]
fn a_server_out_of_reach_is_told_once_in_the_progress() {
    let run = cli("run -m openai:m Hi").start();
    let done = run.done();
    let why = "127.0.0.1:9 can't be reached: Connection refused (os error 111)";
    assert_eq!(done.stderr.matches(why).count(), 2, "the first attempt and the error: {done:?}");
    assert!(done.stderr.contains("! attempt 2 failed, next in"), "{done:?}");
    let done = cli("chat -m openai:m").stdin(stdin(b"Hi\n")).run();
    assert!(done.stderr.contains("error: 127.0.0.1:9 can't"), "{done:?}");
    // A diff in another encoding is piped in.
    let done = cli("run -m openai:m Review this").stdin(stdin(b"+caf\xe9\n")).run();
    assert!(done.stderr.starts_with("stdin has bytes that are not UTF-8 text"), "{done:?}");
    assert!(done.stderr.contains(why), "it is sent: {done:?}");
}

#[test]
fn a_folder_that_can_not_be_created_is_named() {
    let done = cli("run -m openai:m --session s Hi").env("XDG_DATA_HOME", "/dev/null/data").run();
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.stderr.contains("/dev/null/data/mainstem can't be created; set XDG_DATA_HOME"), "{done:?}");
}

/// A file to be read as stdin.
fn stdin(bytes: &[u8]) -> std::fs::File {
    use std::io::{Seek, Write};
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

#[test]
fn the_lists_of_keys_and_vendors_need_no_key_to_be_read() {
    let keys = mainstem("agents keys").run().stdout;
    assert!(keys.lines().all(|line| line.chars().count() <= 100), "{keys}");
    let row = |key: &str| keys.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(row("description").contains("  required  ") && row("output_schema").contains("  none  "));
    let joined = keys.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!joined.contains("not in effect"), "{keys}");
    let doctor = mainstem("doctor").run().stdout;
    assert!(doctor.contains("· openai, responses: not set up (by OPENAI_API_KEY"), "{doctor}");
    assert!(doctor.contains("· ollama: not set up (by OLLAMA_HOST)\n"), "{doctor}");
    let models = mainstem("models").run().stdout;
    assert!(models.contains("not set up") && models.contains("responses: is its Responses API"));
    for (line, expected) in [
        ("serve --help", "       http://127.0.0.1:7878/v1/sessions/one/runs\n"),
        ("run --help", "The order of precedence: flags, the environment, ./mainstem.toml, the user's\n"),
    ] {
        assert!(mainstem(line).run().stdout.contains(expected), "{line}");
    }
}

#[test]
fn the_demo_says_that_it_ignores_the_prompt() {
    let done = mainstem("run -m demo --demo-pace 0 --progress quiet Hi").run();
    assert_eq!(done.stderr, "warning: the demo plays a script; the PROMPT is not used\n");
}
