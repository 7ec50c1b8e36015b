//! What stdout gets, the filters, the record.

use std::{collections::HashSet, io::Write, process::Stdio};

use mainstem::model::{ScriptedModel, scripted::Turn};
use mainstem_event::EventKind;
use mainstem_testing::{ModelServer, laws};
use serde_json::Value;

use crate::support::{demo, events, mainstem};

#[test]
fn ndjson_has_every_event_and_parallel_children_interleave() {
    let done = mainstem("run -m demo --demo-pace 0.02 --output ndjson --progress quiet").run();
    let events = events(&done.stdout);
    laws(&events).unwrap();
    let numbers: Vec<_> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    let of_children: Vec<_> = events.iter().filter_map(|event| event.agent_key()).collect();
    let keys: HashSet<_> = of_children.iter().collect();
    let switches = of_children.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(keys.len(), 5);
    assert!(switches > 20, "{switches}");
}

#[test]
fn json_is_one_object() {
    let done = demo("--output json").run();
    let json: Value = serde_json::from_str(&done.stdout).unwrap();
    let keys: Vec<_> = json.as_object().unwrap().keys().collect();
    let expected =
        ["runId", "sessionId", "outcome", "reply", "stopReason", "error", "usage", "costMicros", "agents"];
    assert_eq!(keys, expected);
    assert_eq!(json["outcome"], "success");
    assert!(json["reply"].as_str().unwrap().starts_with("Don't merge"));
    let names: Vec<_> = json["agents"].as_array().unwrap().iter().map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["main", "reviewer", "reviewer", "tester", "reviewer", "runner"]);
    assert_eq!(json["agents"][0]["reply"], json["reply"]);
    assert!(json["agents"][5]["reply"].as_str().unwrap().starts_with("redeem_twice failed"), "{json}");
}

#[test]
fn diagnostics_say_how_each_agent_arrived() {
    let done = demo("--diagnostics --progress quiet").run();
    let shown: Vec<_> = done.stderr.lines().map(|line| line.split("  ").collect::<Vec<_>>()).collect();
    assert_eq!((shown[0][0], shown[1][0]), ("agent", "main"), "{}", done.stderr);
    assert!(
        done.stderr.contains("\n  reviewer#2 ") && done.stderr.contains("\n    runner "),
        "{}",
        done.stderr
    );

    let done = demo("--diagnostics --progress quiet --output json").run();
    let json: Value = serde_json::from_str(&done.stdout).unwrap();
    let invocations = json["diagnostics"]["invocations"].as_array().unwrap();
    assert_eq!((invocations.len(), &*done.stderr), (6, ""));
    for invocation in invocations {
        assert_eq!(
            (&invocation["forwarded"], &invocation["outcome"]),
            (&invocation["received"], &"success".into())
        );
    }
    assert!(invocations[1]["firstTokenMs"].is_u64(), "{}", invocations[1]);
}

#[test]
fn sse_is_what_a_server_sends() {
    let done = demo("--output sse").run();
    let frames: Vec<_> = done.stdout.split_terminator("\n\n").collect();
    assert_eq!((frames[0], frames[frames.len() - 1]), ("retry: 2000", "event: end\ndata: {}"));
    for (frame, id) in frames[1..frames.len() - 1].iter().zip(1..) {
        let lines: Vec<_> = frame.lines().collect();
        let event: mainstem_event::AgentEvent =
            serde_json::from_str(lines[2].strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(lines[..2], [format!("id: {id}"), format!("event: {}", event.kind.name())]);
    }
}

#[test]
fn filters_leave_events_out_and_numbers_alone() {
    let shown = |arguments: &str| {
        let done = demo(&format!("--output ndjson {arguments}")).run();
        let ids: HashSet<_> = events(&done.stdout)
            .iter()
            .map(|event| {
                event.source().map_or_else(|| "main".to_owned(), |source| source.agent_id.to_string())
            })
            .collect();
        let mut ids: Vec<_> = ids.into_iter().collect();
        ids.sort();
        (ids.join(" "), done.stderr)
    };
    assert_eq!(shown("--only-agent reviewer").0, "reviewer");
    assert_eq!(shown("--max-depth 1").0, "main reviewer tester");
    assert_eq!(shown("--under tester").0, "runner tester");
    let (ids, progress) = shown("--only-agent runner");
    assert_eq!(ids, "runner");
    assert!(progress.contains("#1 runner  started: ") && !progress.contains("tester"), "{progress}");
}

#[test]
fn an_agent_that_nobody_is_is_pointed_out() {
    let done = demo("--only-agent reviwer --progress quiet").run();
    let expected = "warning: --only-agent: there is no agent \"reviwer\"\n";
    assert_eq!((done.code, &*done.stderr), (Some(0), expected));
}

#[test]
fn gated_text_is_one_status_line() {
    let text = |arguments: &str| {
        let done = demo(&format!("--output ndjson --max-depth 0 {arguments}")).run();
        let events = events(&done.stdout);
        let is_text = |kind: &EventKind| matches!(kind, EventKind::TextBlockDelta { .. });
        let is_status =
            |kind: &EventKind| matches!(kind, EventKind::Custom { name, .. } if name == "delegating");
        let count = |is: &dyn Fn(&EventKind) -> bool| events.iter().filter(|event| is(&event.kind)).count();
        (count(&is_text), count(&is_status))
    };
    let (all, none) = text("");
    let (reply, status) = text("--gate-root-text");
    assert_eq!((none, status), (0, 1));
    assert_eq!(all - reply, 10, "the words before the root delegates");
}

#[test]
fn the_record_has_everything() {
    let cli = demo("--only-agent runner --output ndjson --record all.ndjson");
    let record = cli.dir.path().join("all.ndjson");
    let mut running = cli.start();
    running.wait();
    let all = events(&std::fs::read_to_string(record).unwrap());
    laws(&all).unwrap();
    let some = events(&running.done().stdout);
    assert!(some.len() < all.len() && some.iter().all(|event| all.contains(event)));
}

#[test]
fn the_prompt_can_come_from_stdin() {
    let mut running = demo("--output ndjson -").stdin(Stdio::piped()).start();
    let mut stdin = running.child.stdin.take().unwrap();
    stdin.write_all("Größe\nprüfen".as_bytes()).unwrap();
    drop(stdin);
    let started = running.event();
    assert!(
        matches!(&started.kind, EventKind::AgentStart { input, .. } if input[0].text() == "Größe\nprüfen")
    );
}

#[test]
fn what_is_piped_follows_the_prompt_or_is_the_prompt() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let model = ScriptedModel::new().agent("m", [Turn::new().text("Done.")]);
    let server = runtime.block_on(ModelServer::start(model)).unwrap();
    let check = |arguments: &str, piped: &str, expected: &str| {
        let mut running = mainstem(&format!("run -m openai:m -q --output ndjson {arguments}"))
            .env("OPENAI_API_KEY", "k")
            .env("OPENAI_BASE_URL", &server.base_url())
            .stdin(Stdio::piped())
            .start();
        let mut stdin = running.child.stdin.take().unwrap();
        stdin.write_all(piped.as_bytes()).unwrap();
        drop(stdin);
        let started = running.event();
        let EventKind::AgentStart { input, .. } = &started.kind else { panic!("{started:?}") };
        assert_eq!(input[0].text(), expected, "{arguments}");
        assert_eq!(running.done().code, Some(0));
    };
    check("Review", "+1\n", "Review\n\n<stdin>\n+1\n</stdin>");
    check("Fix the bug", "", "Fix the bug");
    check("", "Do this\n", "Do this\n");
    check("-", "Do that", "Do that");
}

#[test]
fn any_agent_can_be_the_root() {
    let done = demo("-a reviewer --progress plain Hi").run();
    assert!(done.stdout.starts_with("src/cart.rs:14"), "{done:?}");
    assert!(done.stderr.contains("\n#1 reviewer  started: Hi\n"), "{done:?}");
}

#[test]
fn the_version_is_said() {
    let version = concat!("mainstem ", env!("CARGO_PKG_VERSION"));
    assert!(mainstem("version").run().stdout.starts_with(version));
    assert_eq!(mainstem("--version").run().stdout, format!("{version}\n"));
}

#[test]
fn help_has_examples_and_exit_codes() {
    let help = mainstem("run --help").run().stdout;
    assert!(help.contains("Examples:\n") && help.contains("\n  130  cancelled by Ctrl-C\n"), "{help}");
    assert!(!help.contains("demo-pace"), "{help}");
}

/// Runs each line of the package's README that begins with `mainstem`, without the demo's pauses.
#[test]
fn commands_of_the_readme_succeed() {
    let readme = include_str!("../../README.md");
    let commands: Vec<_> = readme.lines().filter_map(|line| line.strip_prefix("mainstem ")).collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    for command in commands {
        let (arguments, prompt) = command.split_once(" \"").unwrap_or((command, ""));
        let pace = if arguments.starts_with("run ") { "--demo-pace 0" } else { "" };
        let line = mainstem(&format!("{arguments} {pace}"));
        let prompt = prompt.trim_end_matches('"');
        let done = if prompt.is_empty() { line.run() } else { line.arg(prompt).run() };
        assert_eq!(done.code, Some(0), "{command}: {}", done.stderr);
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("man1");
    assert_eq!(mainstem("man --dir").arg(&pages).run().code, Some(0));
    let help = mainstem("help").run().stdout;
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // A description goes on with deeper indentation.
    let names: Vec<_> = commands.filter(|line| !line.starts_with("   ")).map(|line| &line[2..]).collect();
    assert!(names.len() > 15, "{names:?} {help}");
    for name in names.iter().map(|line| line.split(' ').next().unwrap()).filter(|name| *name != "help") {
        let page = std::fs::read_to_string(pages.join(format!("mainstem-{name}.1"))).unwrap();
        assert!(page.contains(&format!("mainstem\\-{name}")), "{name}: {page}");
    }
    let page = mainstem("man").run().stdout;
    assert_eq!(page, std::fs::read_to_string(pages.join("mainstem.1")).unwrap());
    let done = mainstem("man --dir").arg(pages.join("mainstem.1")).run();
    assert!(done.code == Some(1) && done.stderr.contains("can't create"), "{done:?}");
}
