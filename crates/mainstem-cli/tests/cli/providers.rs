//! Every provider's API, from the command line: a fleet on each, `models`, `doctor`.

use std::sync::atomic::{AtomicUsize, Ordering};

use mainstem::{
    model::{ModelError, ScriptedModel, scripted::Turn},
    provider::{PROVIDERS, Provider},
};
use mainstem_cassette::{Cassette, Mode};
use mainstem_testing::{ModelServer, raw};
use serde_json::{Value, json};

use crate::{
    server::{Server, Step},
    support::{Cli, Done, mainstem},
};

const KEY: &str = "a-key-that-is-secret";

/// Runs the command while a server plays the script in every provider's API.
fn against(model: ScriptedModel, providers: &[usize], cli: impl FnOnce(Cli) -> Cli, line: &str) -> Done {
    recorded(model, providers, cli, line).0
}

/// The same, with the bodies of the requests.
fn recorded(
    model: ScriptedModel,
    providers: &[usize],
    cli: impl FnOnce(Cli) -> Cli,
    line: &str,
) -> (Done, Vec<Value>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = runtime.block_on(ModelServer::start(model)).unwrap();
    let mut command = mainstem(line);
    for provider in providers.iter().map(|number| PROVIDERS[*number]) {
        let url = if provider.base_url == "OPENAI_BASE_URL" { server.base_url() } else { server.root_url() };
        command = command.env(provider.key, KEY).env(provider.base_url, &url);
    }
    let done = cli(command).run();
    assert!(!format!("{done:?}").contains("that-is-secret"), "{done:?}");
    (done, server.requests())
}

#[test]
fn a_fleet_on_each_vendor_with_children_on_another() {
    let spawn = json!({ "agent_id": "kid", "task": "Do it." });
    let script = || {
        let both = Turn::new().call("agent_spawn", spawn.clone()).call("agent_spawn", spawn.clone());
        let lead = [both, Turn::new().text("Both ").text("did it.")];
        ScriptedModel::new().agent("lead", lead).agent("kid", [Turn::new().text("Done.")])
    };
    let all: Vec<_> = (0..PROVIDERS.len()).collect();
    for (number, Provider { name: provider, .. }) in PROVIDERS.iter().enumerate() {
        let other = PROVIDERS[(number + 1) % PROVIDERS.len()].name;
        let kid = format!("---\ndescription: A kid\nmodel: {other}:kid\n---\nYou do it.\n");
        let line = format!("run -m {provider}:lead --progress plain --output json go");
        let done = against(script(), &all, |cli| cli.file("subagents/kid.md", &kid), &line);
        assert_eq!(done.code, Some(0), "{provider}: {done:?}");
        let result: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(result["reply"], "Both did it.", "{provider}");
        assert_eq!(result["agents"].as_array().map(Vec::len), Some(3), "{provider}: {result}");
    }
}

/// A call whose answer never comes is repeated after the time that a file sets.
#[test]
fn a_silent_answer_is_repeated_after_its_idle_timeout() {
    let calls = AtomicUsize::new(0);
    let server = Server::start(move |_| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => vec![Step::Text("Once "), Step::Hang],
        _ => vec![Step::Text("Once upon a time.")],
    });
    let done = mainstem("run --config mainstem.toml -m openai:m --progress plain go")
        .env("OPENAI_BASE_URL", &server.url())
        .env("OPENAI_API_KEY", KEY)
        .file("mainstem.toml", "[providers.openai]\nidle_timeout = '1s'")
        .run();
    assert_eq!((done.code, done.stdout.trim()), (Some(0), "Once upon a time."), "{done:?}");
    assert!(done.stderr.contains("sent nothing for 1s"), "{}", done.stderr);
}

/// The tools of a vendor that a file turns on reach its API under its names; an agent's file has
/// its own, also none.
#[test]
fn tools_of_a_vendor_reach_its_request() {
    #[track_caller]
    fn check(model: &str, provider: usize, tool: &str) {
        let both = ["kid", "none"].map(|agent| json!({ "agent_id": agent, "task": "Do it." }));
        let [kid, none] = both;
        let lead = [Turn::new().call("agent_spawn", kid).call("agent_spawn", none), Turn::new().text("Yes.")];
        let turn = || [Turn::new().text("Done.")];
        let script = ScriptedModel::new().agent("lead", lead).agent("kid", turn()).agent("none", turn());
        let files = |cli: Cli| {
            let agent = |id: &str, tools: &str| {
                let vendor = model.split_once(':').unwrap().0;
                format!("---\ndescription: A {id}\nmodel: {vendor}:{id}\n{tools}---\nYou are the {id}.\n")
            };
            cli.file("mainstem.toml", "server_tools = ['web_search']")
                .file("subagents/kid.md", &agent("kid", "server_tools: [code_execution]\n"))
                .file("subagents/none.md", &agent("none", "server_tools: []\n"))
        };
        let line = format!("run --trust -m {model} --progress quiet go");
        let (done, requests) = recorded(script, &[provider], files, &line);
        assert_eq!((done.code, &*done.stdout), (Some(0), "Yes.\n"), "{model}: {done:?}");
        let with =
            |text: &str| requests.iter().filter(|body| body["tools"].to_string().contains(text)).count();
        // The root asks twice, and each child once.
        assert_eq!((requests.len(), with(tool)), (4, 2), "{model}: {requests:#?}");
        let code = ["code_execution", "code_interpreter", "codeExecution"];
        assert_eq!(code.map(with).iter().sum::<usize>(), 1, "{model}: {requests:#?}");
    }
    let number = |name: &str| PROVIDERS.iter().position(|provider| provider.name == name).unwrap();
    check("anthropic:lead", number("anthropic"), "web_search_20250305");
    check("responses:lead", number("responses"), "web_search");
    check("gemini:lead", number("gemini"), "googleSearch");
}

#[test]
fn a_run_replays_from_a_cassette_without_a_vendor() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let shelf = tempfile::tempdir().unwrap();
    let path = shelf.path().join("tape.jsonl");
    let run = |upstream: &str, mode: Mode, input: &str| {
        let open = Cassette::builder(&path, upstream).with_mode(mode).open();
        let cassette = runtime.block_on(open).unwrap();
        let line = format!("run -m openai:m {input}");
        let done = mainstem(&line).env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", cassette.url()).run();
        let end = runtime.block_on(cassette.finish());
        assert!(!format!("{done:?}{end:?}").contains("that-is-secret"), "{done:?}{end:?}");
        (done, end)
    };
    let script = ScriptedModel::new().agent("m", [Turn::new().text("Hello.")]);
    let server = runtime.block_on(ModelServer::start(script)).unwrap();
    let closed = "http://127.0.0.1:1/v1";
    for (upstream, mode) in [(&*server.base_url(), Mode::Record), (closed, Mode::Replay)] {
        let (done, end) = run(upstream, mode, "Hi");
        assert_eq!((done.code, &*done.stdout), (Some(0), "Hello.\n"), "{done:?}");
        end.unwrap();
    }
    assert!(!std::fs::read_to_string(&path).unwrap().contains("that-is-secret"));
    // Who asks for something else reads why there is no answer.
    let (done, end) = run(closed, Mode::Replay, "Ho");
    assert!(
        done.code != Some(0)
            && done.stderr.contains("tape.jsonl has no response to POST /v1/chat/completions"),
        "{done:?}"
    );
    assert!(end.unwrap_err().to_string().contains(r#"recorded "Hi", requested "Ho""#));
}

#[test]
fn a_key_alone_chooses_the_vendor() {
    for (number, default) in [(1, "claude-haiku-4-5"), (2, "gemini-2.5-flash"), (3, "qwen3")] {
        let script = ScriptedModel::new().agent(default, [Turn::new().text("Hello.")]);
        let done = against(script, &[number], |cli| cli, "run Hi");
        assert_eq!((done.code, &*done.stdout), (Some(0), "Hello.\n"), "{done:?}");
    }
}

#[test]
fn a_model_without_a_provider_finds_it_in_flags_and_files() {
    let spawn = json!({ "agent_id": "kid", "task": "Do it." });
    let script = ScriptedModel::new()
        .agent("claude-x", [Turn::new().call("agent_spawn", spawn), Turn::new().text("Done.")])
        .agent("claude-y", [Turn::new().text("Kid.")]);
    let kid = "---\ndescription: d\nmodel: claude-y\n---\nWork.\n";
    let done = against(script, &[1], |cli| cli.file("subagents/kid.md", kid), "run -m claude-x Hi");
    assert_eq!((done.code, &*done.stdout), (Some(0), "Done.\n"), "{done:?}");
}

#[test]
fn models_says_what_sets_a_vendor_up() {
    let done = mainstem("models").env("GEMINI_API_KEY", KEY).run();
    assert_eq!(done.code, Some(0));
    insta::assert_snapshot!(done.stdout, @r"
    MODEL                          SET UP BY       KEY                   SERVER
    openai:gpt-4o-mini             not set up      OPENAI_API_KEY        OPENAI_BASE_URL
    anthropic:claude-haiku-4-5     not set up      ANTHROPIC_API_KEY     ANTHROPIC_BASE_URL
    gemini:gemini-2.5-flash        GEMINI_API_KEY  GEMINI_API_KEY        GEMINI_BASE_URL
    ollama:qwen3                   not set up      OLLAMA_API_KEY        OLLAMA_HOST
    responses:gpt-4o-mini          not set up      OPENAI_API_KEY        OPENAI_BASE_URL
    openrouter:openrouter/auto     not set up      OPENROUTER_API_KEY    OPENROUTER_BASE_URL
    groq:openai/gpt-oss-120b       not set up      GROQ_API_KEY          GROQ_BASE_URL
    deepseek:deepseek-flash        not set up      DEEPSEEK_API_KEY      DEEPSEEK_BASE_URL
    mistral:mistral-medium-latest  not set up      MISTRAL_API_KEY       MISTRAL_BASE_URL
    xai:grok-4.5                   not set up      XAI_API_KEY           XAI_BASE_URL
    together:openai/gpt-oss-20b    not set up      TOGETHER_API_KEY      TOGETHER_BASE_URL
    azure:…                        not set up      AZURE_OPENAI_API_KEY  AZURE_OPENAI_ENDPOINT
    vllm:…                         not set up      VLLM_API_KEY          VLLM_BASE_URL
    lmstudio:…                     not set up      LM_API_TOKEN          LMSTUDIO_BASE_URL

    openai: is OpenAI's Chat Completions API, which many other servers have, too;
    responses: is its Responses API, which keeps a model's reasoning between the calls of a turn
    prices and context windows are those of 2026-11; `[prices]` and `[context_windows]` in
    mainstem.toml have others
    ");
    let file = "[providers.anthropic]\nbase_url = 'http://localhost:1'";
    let done = mainstem("models --trust --output json").file("mainstem.toml", file).run();
    let models: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(models[1]["set_up_by"], "./mainstem.toml");
    assert_eq!(models[0]["set_up_by"], json!(null));
}

#[test]
fn the_models_of_providers_are_listed() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let page = r#"{"object":"list","data":[{"id":"m\u001b[31m","context_window":8192}]}"#;
    let start = || {
        let answer = raw::whole("200 OK", "content-type: application/json\r\n", page);
        runtime.block_on(raw::Server::start(vec![answer]))
    };
    let listing = |line: &str| {
        let server = start();
        let cli = mainstem(line).env("GROQ_API_KEY", KEY).env("GROQ_BASE_URL", &server.url());
        let done = cli.env("OLLAMA_HOST", "http://127.0.0.1:1").run();
        assert!(!format!("{done:?}").contains("that-is-secret"), "{done:?}");
        done
    };
    let done = listing("models --online groq");
    let table = "MODEL   CONTEXT  OUTPUT\ngroq:m  8192     -\n";
    assert_eq!((done.code, &*done.stdout), (Some(0), table), "{done:?}");
    let done = listing("models --online --output json");
    let listed: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(done.code, Some(4), "one fails: {done:?}");
    assert!(done.stderr.starts_with("error: ollama: 127.0.0.1:1 can't be reached"), "{done:?}");
    assert!(listed[0]["error"].is_string() && listed[0]["models"] == json!([]), "{listed}");
    assert_eq!(
        (&listed[1]["provider"], &listed[1]["models"][0]["context_window"]),
        (&json!("groq"), &json!(8192))
    );
    let done = mainstem("models --online grok").run();
    let error = "error: --online: unknown provider \"grok\"; did you mean \"groq\"?\n";
    assert_eq!((done.code, &*done.stderr), (Some(2), error));
    let done = mainstem("models --online").run();
    assert!(
        done.code == Some(3) && done.stderr.starts_with("error: no provider is set up\nset "),
        "{done:?}"
    );
    let done = mainstem("models --online groq").run();
    let error =
        "error: groq: GROQ_API_KEY is not set; set it, or set GROQ_BASE_URL to a server that needs no key\n";
    assert_eq!((done.code, &*done.stderr), (Some(4), error));
}

#[test]
fn doctor_says_what_is_wrong_and_the_fix() {
    let check = |cli: Cli, code: i32, expected: &[&str]| {
        let done = cli.run();
        assert_eq!(done.code, Some(code), "{done:?}");
        for line in expected {
            assert!(done.stdout.contains(line), "{line}: {}", done.stdout);
        }
    };
    check(
        mainstem("doctor"),
        3,
        &["✘ model: none is configured\n    fix: set OPENAI_API_KEY", "· gemini: not set up"],
    );
    check(mainstem("doctor -m demo"), 0, &["✔ model: demo (--model)", "0 agents in files"]);
    check(
        mainstem("doctor -m demo -w no/where"),
        3,
        &["✘ workspace: no/where is not a directory (--workspace)"],
    );
    check(
        mainstem("doctor -m demo").file("subagents/a.md", "---\nsteps: many\n---\n"),
        3,
        &["0 agents in files, 2 errors\n    fix: see `mainstem agents validate`"],
    );
    check(
        mainstem("doctor").file("mainstem.toml", "modle = 'x'"),
        3,
        &["✘ configuration: ./mainstem.toml:1:1: unknown key"],
    );
    check(
        mainstem("doctor -m openai:x").env("LANG", "C").env("OPENAI_API_KEY", KEY),
        0,
        &["ok openai, responses: set up by OPENAI_API_KEY"],
    );
    let done = mainstem("doctor --output json").run();
    let findings: Vec<Value> = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(done.code, Some(3));
    assert_eq!(findings[0], json!({ "state": "ok", "text": "configuration: read" }));
    let model = findings.iter().find(|finding| finding["text"] == "model: none is configured").unwrap();
    assert!(
        model["state"] == "wrong" && model["fix"].as_str().unwrap().contains("OPENAI_API_KEY"),
        "{model}"
    );
}

#[test]
fn doctor_asks_if_it_is_told_to() {
    let ask = |turn: fn() -> Turn| {
        let script = ScriptedModel::new().agent("m", [turn()]);
        against(script, &[1], |cli| cli, "doctor --online -m anthropic:m")
    };
    let done = ask(|| Turn::new().text("one ").text("two").call("ping", json!({})));
    assert!(
        done.code == Some(0) && done.stdout.contains("✔ online: it streams: 2 pieces, the first after"),
        "{done:?}"
    );
    assert!(done.stdout.ends_with("✔ online: it calls tools\n"), "{done:?}");
    let done = ask(|| Turn::new().text("One piece."));
    assert!(done.code == Some(4) && done.stdout.contains("✘ online: its answer came as 1 piece"), "{done:?}");
    assert!(
        done.stdout.contains(
            "✘ online: it did not call the tool that it was asked to call\n    fix: choose a model"
        ),
        "{done:?}"
    );
    let done = ask(|| Turn::new().fail(ModelError::from_status(401, "no such key: a-key-that-is-secret")));
    assert!(
        done.code == Some(4) && done.stdout.contains("it failed: 127.0.0.1:") && done.stdout.contains("401"),
        "{done:?}"
    );
}
