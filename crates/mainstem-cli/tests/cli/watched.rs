//! `mainstem watch`, and the key `w` of a run.

use std::{
    fs::File,
    io::Write,
    time::{Duration, Instant},
};

use crate::{
    server::{Server, Step},
    support::{Cli, demo, mainstem, program},
    terminal::{ASKING, Terminal, on, spawning, until_stopped},
};

#[test]
fn a_record_is_watched_back_and_forth() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("demo.ndjson");
    assert_eq!(demo("--quiet --record").arg(&file).run().code, Some(0));
    let terminal = Terminal::new();
    let mut running = on(&terminal, mainstem("watch").arg(&file).stdin(terminal.line()));
    terminal.until("end");
    terminal.until("reviewer");
    terminal.type_in("\u{1b}[B\u{1b}[B");
    terminal.until("reviewer security ·");
    terminal.type_in("0");
    terminal.until("no events yet");
    terminal.type_in("l");
    terminal.until("one code can be");
    terminal.type_in("m");
    terminal.until("this is a record, not a session");
    terminal.type_in("q");
    let (code, screen) = terminal.end(&mut running);
    assert_eq!((code, &*screen), (Some(0), ""), "the first screen is back");
}

#[test]
fn what_can_not_be_watched_is_an_error_on_the_first_screen() {
    let check = |what: &str, expected: &str| {
        let terminal = Terminal::new();
        let cli = mainstem("watch").arg(what).file("empty.ndjson", "").file("not.ndjson", "hello\n");
        let mut running = on(&terminal, cli.stdin(terminal.line()));
        let (code, screen) = terminal.end(&mut running);
        assert!(code == Some(2) && screen.contains(expected), "{what}: {screen}");
    };
    check("empty.ndjson", "empty.ndjson: it has no events");
    check("not.ndjson", "not an event");
    check("./", "directory");
    check("nowhere", "there is no file \"nowhere\"");
    assert!(mainstem("watch x").run().stderr.contains("watch needs a terminal"));
}

#[test]
fn a_session_of_a_server_is_watched_and_answered() {
    let server = spawning();
    let dir = tempfile::tempdir().unwrap();
    let line = "serve -m openai:m --bind 127.0.0.1:0 --log off --token-file tokens --journal";
    let serve = mainstem(line).arg(dir.path().join("j.db")).file("mainstem.toml", ASKING);
    let serve = serve.file("tokens", "a-token-for-the-tests\n").env("OPENAI_API_KEY", "sk-secret-123456");
    let mut serving = serve.env("OPENAI_BASE_URL", &server.url()).start();
    let url = serving.line().trim().to_owned();
    let ask = |line: &str| {
        let cli = mainstem(line).env("MAINSTEM_SERVER", &url);
        cli.env("MAINSTEM_TOKEN", "a-token-for-the-tests")
    };
    let first = Terminal::new();
    let mut run = on(&first, ask("run --session s Dig").stdin(first.line()));
    first.until("main wants to run agent_spawn");
    let second = Terminal::new();
    let mut watch = on(&second, ask("watch").stdin(second.line()));
    second.until("main wants to run agent_spawn");
    second.type_in("y");
    second.until("run it? Enter: yes");
    second.type_in("\r");
    second.until("answered");
    second.until("It dug.");
    second.type_in("\u{1b}[B");
    second.until("> Dig");
    second.type_in("q");
    assert_eq!(second.end(&mut watch).0, Some(0));
    let (code, screen) = first.end(&mut run);
    assert!(code == Some(0) && screen.contains("It dug."), "{screen}");
}

/// A model that stops in the middle of its answer until the gate is open, and repeats what it is
/// told meanwhile.
fn gated() -> Server {
    Server::start(|request| {
        let messages = request["messages"].as_array().unwrap();
        match &*messages.last().unwrap()["content"].to_string() {
            "\"Paint\"" => vec![Step::Text("I paint it red."), Step::Gate],
            last => vec![Step::Text(Box::leak(format!("You said {last}.").into_boxed_str()))],
        }
    })
}

#[test]
fn a_run_is_watched_with_a_key_and_goes_on_meanwhile() {
    let server = gated();
    let terminal = Terminal::new();
    let cli = mainstem("run --no-files Paint").env("OPENAI_BASE_URL", &server.url());
    let mut running = on(&terminal, cli.stdin(terminal.line()));
    terminal.until("I paint it red.");
    terminal.type_in("another key\r");
    std::thread::sleep(Duration::from_millis(200));
    terminal.type_in("w");
    terminal.until("? all keys");
    terminal.until("> Paint");
    // Back, and there again.
    terminal.type_in("q");
    terminal.until_gone("all keys");
    terminal.until("[+] Paint");
    terminal.type_in("w");
    terminal.until("? all keys");
    terminal.type_in("mrather blue\r");
    terminal.until("sent");
    server.open_gate();
    terminal.until("You said \"rather blue\".");
    // The end stays on the screen until the person leaves.
    terminal.type_in("q");
    let (code, screen) = terminal.end(&mut running);
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("[✔] Paint") && screen.ends_with("You said \"rather blue\"."), "{screen}");
}

#[test]
fn a_run_that_is_told_to_stop_leaves_the_screen_on_which_it_is_watched() {
    let server = gated();
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let terminal = Terminal::new();
        let cli = mainstem("run --no-files Paint").env("OPENAI_BASE_URL", &server.url());
        let mut running = on(&terminal, cli.stdin(terminal.line()));
        terminal.until("I paint it red.");
        terminal.type_in("w");
        terminal.until("? all keys");
        running.signal(signal);
        let (ended, screen) = terminal.end(&mut running);
        assert_eq!(ended, Some(code), "{screen}");
        assert!(screen.contains("Paint") && !screen.contains("all keys"), "{screen}");
    }
}

#[test]
fn a_question_waits_for_the_person_who_watches() {
    let server = spawning();
    let terminal = Terminal::new();
    let cli = mainstem("run Dig").env("OPENAI_BASE_URL", &server.url()).file("mainstem.toml", ASKING);
    let mut running = on(&terminal, cli.stdin(terminal.line()));
    terminal.until("main wants to run agent_spawn");
    // While a question is open, a letter is the beginning of an answer.
    terminal.type_in("w");
    terminal.until("> w_");
    terminal.type_in("\u{7f}y\r");
    let (code, screen) = terminal.end(&mut running);
    assert!(code == Some(0) && screen.contains("It dug."), "{screen}");
}

#[test]
fn watch_says_that_the_process_or_the_server_is_gone() {
    let server = Server::start(|_| vec![Step::Text("I hang."), Step::Hang]);
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("j.db");
    let model =
        |cli: Cli| cli.env("OPENAI_BASE_URL", &server.url()).env("OPENAI_API_KEY", "sk-secret-123456");
    let run = model(mainstem("run --no-files --session s --output ndjson Go --journal").arg(&journal));
    let mut run = run.start();
    while !run.line().contains("I hang.") {}
    // What is streamed is recorded a moment later.
    let started = Instant::now();
    let is_recorded = || mainstem("sessions show s --journal").arg(&journal).run().code == Some(0);
    while !is_recorded() {
        assert!(started.elapsed() < Duration::from_secs(20), "the session is not recorded");
    }
    let terminal = Terminal::new();
    let mut watch = on(&terminal, mainstem("watch s --journal").arg(&journal).stdin(terminal.line()));
    terminal.until("I hang.");
    terminal.until("? all keys");
    run.signal("KILL");
    terminal.until("the process of session \"s\" ended before its run");
    terminal.type_in("q");
    assert_eq!(terminal.end(&mut watch).0, Some(0));

    let line = "serve -m openai:m --bind 127.0.0.1:0 --log off --token-file tokens --journal";
    let serve = mainstem(line).arg(dir.path().join("k.db")).file("tokens", "a-token-for-the-tests\n");
    let mut serving = model(serve).start();
    let url = serving.line().trim().to_owned();
    let ask = |line: &str| {
        mainstem(line).env("MAINSTEM_SERVER", &url).env("MAINSTEM_TOKEN", "a-token-for-the-tests")
    };
    let mut run = ask("run --session t --output ndjson Go").start();
    while !run.line().contains("I hang.") {}
    let terminal = Terminal::new();
    let mut watch = on(&terminal, ask("watch t").stdin(terminal.line()));
    terminal.until("I hang.");
    serving.signal("KILL");
    terminal.until("can't be reached");
    terminal.type_in("q");
    assert_eq!(terminal.end(&mut watch).0, Some(0));
}

/// Ctrl-Z on the full screen: the shell writes below the tree of the run, which is then drawn below
/// that.
#[test]
#[cfg(target_os = "linux")]
fn a_run_that_is_stopped_while_it_is_watched_draws_its_tree_anew() {
    let server = gated();
    for by_key in [true, false] {
        let terminal = Terminal::new();
        // In a process group of its own, which the key stops.
        let line = ["--ctty", env!("CARGO_BIN_EXE_mainstem"), "run", "--no-files", "Paint"];
        let cli = program("setsid", &line).env("OPENAI_BASE_URL", &server.url());
        let mut running = on(&terminal, cli.stdin(terminal.line()));
        terminal.until("I paint it red.");
        terminal.type_in("w");
        terminal.until("? all keys");
        if by_key {
            terminal.type_in("\u{1a}");
        } else {
            running.signal("TSTP");
        }
        until_stopped(&running, true);
        terminal.until_gone("all keys");
        File::from(terminal.line()).write_all(b"[1]+ Stopped\r\n$ fg\r\n").unwrap();
        running.signal("CONT");
        terminal.until("? all keys");
        terminal.type_in("q");
        terminal.until_gone("all keys");
        terminal.until("$ fg\n[+] Paint");
        terminal.type_in("\u{3}");
        let (code, screen) = terminal.end(&mut running);
        assert_eq!(code, Some(130), "{screen}");
        assert!(screen.contains("[1]+ Stopped\n$ fg\n"), "{screen}");
        assert!(screen.matches("Paint").count() == 2, "{screen}");
    }
}

/// Two children hang: the end of one is announced, and the other is cancelled.
#[test]
fn the_end_of_an_agent_is_awaited_and_an_agent_is_cancelled() {
    let server = Server::start(|request| {
        let text = request["messages"].to_string();
        let spawn =
            |task: &str| ("agent_spawn", serde_json::json!({ "agent_id": "general-purpose", "task": task }));
        match () {
            () if text.contains("cancelled") => vec![Step::Text("One dug.")],
            () if text.contains("Dig here") && text.contains("You are a subagent") => {
                vec![Step::Text("Here."), Step::Gate]
            }
            () if text.contains("You are a subagent") => vec![Step::Text("There."), Step::Hang],
            () => vec![Step::Call(vec![spawn("Dig here"), spawn("Dig there")])],
        }
    });
    let terminal = Terminal::new();
    let cli = mainstem("run --no-files Dig").env("OPENAI_BASE_URL", &server.url());
    let mut running = on(&terminal, cli.stdin(terminal.line()));
    terminal.until("Here.");
    terminal.until("There.");
    terminal.type_in("w");
    terminal.until("? all keys");
    terminal.type_in("\u{1b}[B");
    terminal.until("> Dig here");
    terminal.type_in("w");
    terminal.until("its end will be announced");
    server.open_gate();
    terminal.until_bell();
    terminal.type_in("w");
    terminal.until("it has ended");
    terminal.type_in("\u{1b}[B");
    terminal.until("> Dig there");
    terminal.type_in("c");
    terminal.until("general-purpose#2 Dig there and those below it? Enter: yes");
    terminal.type_in("\r");
    terminal.until("is asked to stop");
    terminal.until("✔ main");
    terminal.type_in("q");
    let (code, screen) = terminal.end(&mut running);
    assert!(screen.contains("One dug."), "{code:?} {screen}");
}
