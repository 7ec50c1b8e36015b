//! Each exit code, and what is said with it.

use mainstem_event::{EventKind, Outcome};
use serde_json::json;

use crate::{
    server::{Server, Step},
    support::{Done, demo, example, mainstem},
};

/// A run against a server that does this with every request.
fn against(steps: Vec<Step>, arguments: &str) -> Done {
    let server = Server::start(move |_| steps.clone());
    let cli = mainstem(&format!("run --progress quiet {arguments} Hi"));
    cli.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456").run()
}

fn check(done: &Done, code: i32, stderr: &str) {
    let shown = done.stderr.lines().map(|line| match line.split_once("127.0.0.1:") {
        Some((before, after)) => {
            format!("{before}HOST{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        None => line.to_owned(),
    });
    let shown = shown.collect::<Vec<_>>().join("\n");
    assert_eq!((done.code, &*shown), (Some(code), stderr), "{done:?}");
    assert!(!format!("{done:?}").contains("sk-secret"), "{done:?}");
}

#[test]
fn a_reply_is_0() {
    let done = demo("--progress quiet").run();
    check(&done, 0, "");
    assert!(done.stdout.starts_with("Don't merge: ") && done.stdout.ends_with("(security)\n"), "{done:?}");
}

#[test]
fn a_failed_run_is_1() {
    check(
        &against(vec![Step::Garbage], ""),
        1,
        "error: HOST sent what is no chat completion: key must be a string at line 1 column 2: {garbage",
    );
    let refused = Step::Refuse("400 Bad Request", "", json!({ "error": { "message": "no" } }).to_string());
    check(&against(vec![refused], ""), 1, "error: HOST answered 400 Bad Request: no");
}

#[test]
fn a_wrong_command_line_is_2() {
    check(&demo("  ").arg(" \n").run(), 2, "error: the PROMPT is empty");
    let known = "general-purpose, main, reviewer, tester";
    check(
        &demo("-a reviwer").run(),
        2,
        &format!("error: --agent: unknown agent \"reviwer\"; known: {known}; did you mean \"reviewer\"?"),
    );
    check(&demo("-a runner").run(), 2, "error: --agent: \"runner\" can't be run: its mode is subagent");
    check(
        &demo("--record no/such/dir").run(),
        2,
        "error: --record no/such/dir: No such file or directory (os error 2)",
    );
    check(
        &demo("--output-schema no/such/file").run(),
        2,
        "error: --output-schema no/such/file: No such file or directory (os error 2)",
    );
    check(
        &demo("--output-schema form.json").file("form.json", "{\"type\":").run(),
        2,
        "error: --output-schema form.json: EOF while parsing a value at line 1 column 8",
    );
    check(
        &demo("--output-schema form.json").file("form.json", "{}").run(),
        2,
        "error: --output-schema: the demo plays a script, whose reply has no schema",
    );
    // What never ends is read to a bound.
    #[cfg(unix)]
    for (line, flag) in [
        ("run -m openai:m hi --output-schema /dev/zero", "--output-schema /dev/zero"),
        ("serve -m openai:m --token-file /dev/zero", "--token-file /dev/zero"),
    ] {
        let done = mainstem(line).env("OPENAI_API_KEY", "k").run();
        assert_eq!(done.stderr.trim_end(), format!("error: {flag}: it is larger than 1048576 bytes"));
    }
    let done = mainstem("run").env("OPENAI_API_KEY", "k").run();
    check(&done, 2, "error: no PROMPT is given; say what to do, or pipe it to stdin");
    for wrong in [
        "run --nonsense",
        "run --output xml",
        "run --timeout 10",
        "run --max-turns 0",
        "run --budget-tokens x",
        "run --budget-cost 1e3",
        "nonsense",
        "",
    ] {
        assert_eq!(mainstem(wrong).run().code, Some(2), "{wrong}");
    }
}

#[test]
fn no_usable_model_is_3() {
    check(
        &mainstem("run Hi").run(),
        3,
        "error: no model is configured\nset OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or OLLAMA_HOST: each chooses its provider and a default model\n\
         (`mainstem models` lists more);\n\
         for a local server, set OPENAI_BASE_URL and choose a model by -m, MAINSTEM_MODEL or `model` in ./mainstem.toml\nor play the demo: `mainstem run -m demo`",
    );
    check(
        &mainstem("run -m gpt Hi").run(),
        3,
        "error: --model: unknown model \"gpt\"; known: demo, anthropic:…, azure:…, deepseek:…, gemini:…, groq:…, lmstudio:…, mistral:…, ollama:…, openai:…, openrouter:…, responses:…, together:…, vllm:…, xai:…",
    );
}

#[test]
fn a_provider_that_refuses_is_4() {
    let body = || json!({ "error": { "message": "Incorrect API key: sk-secret-123456" } }).to_string();
    check(
        &against(vec![Step::Refuse("401 Unauthorized", "", body())], ""),
        4,
        "error: HOST answered 401 Unauthorized: Incorrect API key: [secret] (check the API key and its rights)",
    );
    let done = against(vec![Step::Refuse("429 Too Many Requests", "retry-after: 600\r\n", body())], "");
    assert_eq!(done.code, Some(4), "{done:?}");
}

#[test]
fn a_reply_has_the_form_that_was_asked_for() {
    let form = r#"{"type":"object","properties":{"score":{"type":"integer"}},"required":["score"]}"#;
    let against = |steps: Vec<Step>| {
        let server = Server::start(move |_| steps.clone());
        let cli = mainstem("run --progress quiet --output-schema form.json Hi").file("form.json", form);
        cli.env("OPENAI_BASE_URL", &server.url()).run()
    };
    let done = against(vec![Step::Call(vec![("final_answer", json!({ "score": 4 }))])]);
    assert_eq!((done.code, &*done.stdout), (Some(0), "{\"score\":4}\n"), "{done:?}");
    let problems = "error: the answer does not fit the output schema:\n- the answer is no JSON: expected value at line 1 column 1";
    check(&against(vec![Step::Text("Good.")]), 1, &format!("{problems}\nthe answer was: Good."));
}

#[test]
fn the_limit_of_turns_is_5_and_there_is_a_reply() {
    let done = demo("--max-turns 1 --progress quiet").run();
    check(&done, 5, "error: the limit of turns was reached; the reply may be incomplete");
    assert!(done.stdout.starts_with("Don't merge: "), "{done:?}");
}

#[test]
fn a_budget_that_is_used_up_is_5() {
    let done = demo("--budget-tokens 10 --progress quiet").run();
    assert_eq!((done.code, &*done.stdout), (Some(5), ""), "{done:?}");
    assert!(done.stderr.contains("the token budget of the run has 10 of 10 left"), "{done:?}");
    let file = "[budget]\ntokens = 10\ntime_seconds = 600";
    let done = demo("--progress quiet").file("mainstem.toml", file).run();
    assert_eq!(done.code, Some(5), "{done:?}");
    let done = demo("--budget-tokens 1000000 --progress quiet").file("mainstem.toml", file).run();
    assert_eq!(done.code, Some(0), "a flag goes before a file: {done:?}");
}

#[test]
fn a_budget_of_money_needs_prices() {
    let unpriced = "the cost budget of the run has $0.50 left, and the model's price is unknown";
    let done = demo("--budget-cost 0.5 --progress quiet").run();
    assert!(done.code == Some(5) && done.stderr.contains(unpriced), "{done:?}");
    let price =
        |dollars: u64| format!("[prices]\n\"demo\" = {{ input = 0, output = {} }}", dollars * 1_000_000);
    let done = demo("--trust --budget-cost 0.5 --progress quiet").file("mainstem.toml", &price(1)).run();
    assert_eq!(done.code, Some(0), "{done:?}");
    // Four thousand tokens of output may come, at a dollar each.
    let done =
        demo("--trust --budget-cost 0.5 --progress quiet").file("mainstem.toml", &price(1_000_000)).run();
    assert!(done.code == Some(5) && done.stderr.contains("has $0.50 of $0.50 left"), "{done:?}");
}

/// The root's first answer calls a reviewer, whose model fails.
fn failing_child(arguments: &str) -> Done {
    let server = Server::start(|request| match request["messages"].as_array().unwrap().len() {
        _ if request.to_string().contains("You are a subagent") => {
            vec![Step::Refuse("400 Bad Request", "", "{}".to_owned())]
        }
        2 => vec![Step::Call(vec![("agent_spawn", json!({ "agent_id": "reviewer", "task": "t" }))])],
        _ => vec![Step::Text("Without a review, then.")],
    });
    let cli = mainstem(&format!("run --progress quiet {arguments} Hi"));
    cli.arg("-w").arg(example()).env("OPENAI_BASE_URL", &server.url()).run()
}

#[test]
fn a_failed_child_is_6_if_asked_for() {
    check(&failing_child("--strict-children"), 6, "error: a child failed: reviewer");
    check(&failing_child(""), 0, "");
    assert_eq!(failing_child("--strict-children").stdout, "Without a review, then.\n");
}

#[test]
fn a_timeout_is_124() {
    let started = std::time::Instant::now();
    let done = mainstem("run -m demo --timeout 300ms --progress quiet --output json").run();
    check(&done, 124, "cancelling 1 agent… the time is up\nerror: there was no reply within 300ms");
    assert!(started.elapsed().as_secs() < 5);
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&json["outcome"], &json["reply"]), (&json!("timeout"), &json!(null)));
    // What the agents themselves say, too.
    let done = mainstem("run -m demo --timeout 300ms --progress quiet --output ndjson").run();
    let events = crate::support::events(&done.stdout);
    let EventKind::AgentEnd { outcome, error, .. } = &events.last().unwrap().kind else { panic!("{done:?}") };
    assert_eq!(
        (*outcome, error.as_ref().unwrap().to_string()),
        (Outcome::Timeout, "timeout: timed out after 300 ms".to_owned())
    );
}

/// What the agents have said is not lost with a run that fails.
#[test]
fn the_object_of_a_run_that_fails_has_what_was_said() {
    let steps = vec![Step::Text("Half of "), Step::Text("it"), Step::Garbage];
    let done = against(steps, "--output json --on-cut fail");
    assert_eq!(done.code, Some(1), "{done:?}");
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&json["reply"], &json["partialReply"]), (&json!(null), &json!("Half of it")));
    assert_eq!(json["agents"][0]["partialReply"], "Half of it");
    let whole = against(vec![Step::Text("All of it")], "--output json");
    assert!(!whole.stdout.contains("partialReply"), "{whole:?}");
}

/// An answer that reached its length limit is incomplete.
#[test]
fn an_answer_that_reached_its_limit_is_a_warning() {
    let done = against(vec![Step::Text("Half of it"), Step::End("length")], "--max-output-tokens 500");
    check(&done, 0, "warning: the answer reached the limit of its length; it may be incomplete");
    let steps = vec![Step::Text("Half of it"), Step::End("length")];
    let done = against(steps, "--max-output-tokens 500 --output json");
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&json["stopReason"], &json["reply"]), (&json!("length"), &json!("Half of it")));
}

#[test]
fn the_demo_can_be_kept_from_spawning() {
    let deepest = |limits: &str, file: &str| {
        let cli = mainstem(&format!("run -m demo --demo-pace 0 --progress quiet --output ndjson {limits}"));
        let done = if file.is_empty() { cli.run() } else { cli.file("mainstem.toml", file).run() };
        crate::support::events(&done.stdout).iter().map(|event| event.depth()).max()
    };
    assert_eq!(deepest("", ""), Some(2));
    assert_eq!(deepest("--max-agent-depth 1", ""), Some(1));
    assert_eq!(deepest("", "[limits]\nmax_depth = 1\n"), Some(1));
    assert_eq!(deepest("--max-agent-depth 2", "[limits]\nmax_depth = 0\n"), Some(2));
}
