//! On a terminal, which is a pseudo-terminal with an emulator behind it.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use serde_json::json;

use crate::{
    server::{Server, Step},
    support::{Cli, Running, mainstem, program},
};

/// A terminal, by default of 80 by 24.
pub(crate) struct Terminal {
    parser: Arc<Mutex<vt100::Parser<Bells>>>,
    reader: JoinHandle<()>,
    keys: File,
    /// Kept open, or the reader sees an end before anything was written.
    line: OwnedFd,
}

/// How often the bell has rung.
struct Bells(usize);

impl vt100::Callbacks for Bells {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.0 += 1;
    }
}

impl Terminal {
    pub(crate) fn new() -> Self {
        Self::sized(80, 24)
    }

    pub(crate) fn sized(columns: u16, rows: u16) -> Self {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap();
        let line = open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        tcsetwinsize(&line, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let [rows, columns] = [rows, columns].map(|size| size.try_into().unwrap());
        let parser = Arc::new(Mutex::new(vt100::Parser::new_with_callbacks(rows, columns, 0, Bells(0))));
        let (screen, keys) = (parser.clone(), File::from(main.try_clone().unwrap()));
        let reader = std::thread::spawn(move || {
            let (mut main, mut bytes) = (File::from(main), [0; 4096]);
            // Reading fails once the line is closed.
            while let Ok(count @ 1..) = main.read(&mut bytes) {
                screen.lock().unwrap().process(&bytes[..count]);
            }
        });
        Self { parser, reader, keys, line }
    }

    pub(crate) fn line(&self) -> OwnedFd {
        self.line.try_clone().unwrap()
    }

    pub(crate) fn type_in(&self, text: &str) {
        (&self.keys).write_all(text.as_bytes()).unwrap();
    }

    /// Returns the cells as they are now.
    pub(crate) fn cells(&self) -> vt100::Screen {
        self.parser.lock().unwrap().screen().clone()
    }

    pub(crate) fn screen(&self) -> String {
        self.parser.lock().unwrap().screen().contents()
    }

    /// Waits until the screen shows something.
    pub(crate) fn until(&self, text: &str) {
        let started = Instant::now();
        while !self.screen().contains(text) {
            assert!(started.elapsed() < Duration::from_secs(20), "no {text:?} in\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the screen ends with a line.
    pub(crate) fn until_last(&self, line: &str) {
        let started = Instant::now();
        while self.screen().trim_end().lines().last() != Some(line) {
            assert!(started.elapsed() < Duration::from_secs(20), "no {line:?} ends\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the screen no longer shows something.
    pub(crate) fn until_gone(&self, text: &str) {
        let started = Instant::now();
        while self.screen().contains(text) {
            assert!(started.elapsed() < Duration::from_secs(20), "{text:?} stays in\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the bell has rung.
    pub(crate) fn until_bell(&self) {
        let started = Instant::now();
        while self.parser.lock().unwrap().callbacks().0 == 0 {
            assert!(started.elapsed() < Duration::from_secs(20), "no bell\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The screen after the process has ended.
    pub(crate) fn end(self, running: &mut Running) -> (Option<i32>, String) {
        let code = running.wait().code();
        drop(self.line);
        self.reader.join().unwrap();
        let screen = self.parser.lock().unwrap().screen().contents();
        (code, screen)
    }
}

/// Both streams on one terminal.
pub(crate) fn on(terminal: &Terminal, cli: Cli) -> Running {
    cli.streams(terminal.line(), terminal.line()).spawn()
}

/// Returns the sign and the name in a line of the tree.
fn times_left_out(line: &str) -> String {
    let lead = line.len() - line.trim_start().len();
    let name = line[lead..].split("   ").next().unwrap();
    line[..lead].to_owned() + name
}

#[test]
fn without_a_model_it_is_the_demo_live() {
    let terminal = Terminal::new();
    let mut running = on(&terminal, mainstem("run --demo-pace 0.1"));
    terminal.until("runner Run the tests");
    let (code, screen) = terminal.end(&mut running);
    assert_eq!(code, Some(0));
    let lines: Vec<_> = screen.lines().collect();
    let head = lines.iter().position(|line| line.starts_with("[✔] Review the discount change")).unwrap();
    assert!(lines[head].contains("6 agents"), "{screen}");
    let note = lines[..head].join("");
    assert!(note.starts_with("no model is configured, so this is the demo; set OPENAI_API_KEY"), "{screen}");
    let tree: Vec<_> = lines[head + 1..head + 7].iter().map(|line| times_left_out(line)).collect();
    assert_eq!(
        tree,
        [
            " ✔ main",
            "   ✔ reviewer correctness",
            "   ✔ reviewer security",
            "   ✔ tester tests",
            "     ✔ runner Run the tests of…",
            "   ✔ reviewer promises",
        ]
    );
    let reply = &lines[head + 7..];
    assert_eq!(reply[0], "Don't merge: the total can panic, and an empty code is accepted.");
    assert_eq!(reply.len(), 5, "{screen}");
}

#[test]
fn ctrl_c_leaves_a_clean_screen() {
    let terminal = Terminal::new();
    let mut running = on(&terminal, mainstem("run -m demo"));
    terminal.until("waits for 3 agents");
    running.signal("INT");
    let (code, screen) = terminal.end(&mut running);
    assert_eq!(code, Some(130));
    assert!(screen.starts_with("cancelling 5 agents… press Ctrl-C again to abort\n"), "{screen}");
    assert_eq!(screen.matches(" cancelled\n").count(), 6 - 1, "{screen}");
    assert!(screen.contains("\n[■] Review the discount change"), "{screen}");
    assert_eq!(screen.trim_end().lines().last(), Some("error: cancelled by the user (Ctrl-C)"));
}

#[test]
fn a_dumb_terminal_gets_lines_without_controls() {
    for (name, value) in [("TERM", "dumb"), ("CI", "1")] {
        let terminal = Terminal::new();
        let mut running =
            on(&terminal, mainstem("run -m demo --demo-pace 0").env(name, value).env("NO_COLOR", "1"));
        let (code, screen) = terminal.end(&mut running);
        assert_eq!(code, Some(0));
        assert!(screen.contains("#6 runner  ✔ done, "), "{screen}");
    }
}

#[test]
fn a_stream_on_a_terminal_is_not_disturbed() {
    let terminal = Terminal::new();
    let mut running = on(&terminal, mainstem("run -m demo --demo-pace 0 --output ndjson --only-agent main"));
    let (code, screen) = terminal.end(&mut running);
    assert_eq!(code, Some(0));
    assert!(screen.contains("\"type\":\"AGENT_END\"") && !screen.contains("[✔]"), "{screen}");
}

#[test]
fn hostile_text_cannot_control_the_terminal() {
    use crate::server::{Server, Step};
    let server = Server::start(|_| vec![Step::Text("safe \u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}2Jtext")]);
    let terminal = Terminal::new();
    let cli = mainstem("run --progress plain Hi").env("OPENAI_BASE_URL", &server.url());
    let mut running = on(&terminal, cli);
    let (code, screen) = terminal.end(&mut running);
    assert_eq!(code, Some(0));
    assert!(screen.contains("safe 2Jtext") && screen.contains("#1 main  started: Hi"), "{screen}");
}

/// The root calls a tool of the fleet; then it says what it read of that.
pub(crate) fn spawning() -> Server {
    Server::start(|request| {
        let text = request["messages"].to_string();
        let spawn = json!({ "agent_id": "general-purpose", "task": "Dig" });
        match () {
            () if text.contains("You are a subagent") => vec![Step::Text("Gold.")],
            () if text.contains("status: completed") => vec![Step::Text("It dug.")],
            () if text.contains("not in my garden") => vec![Step::Text("Then not.")],
            () => vec![Step::Call(vec![("agent_spawn", spawn)])],
        }
    })
}

pub(crate) const ASKING: &str = "[permissions]\nask = [\"agent_spawn\"]\n";

#[test]
fn a_person_at_the_terminal_is_asked() {
    for (typed, reply) in [("what?\ny\n", "It dug."), ("n not in my garden\n", "Then not.")] {
        let server = spawning();
        let terminal = Terminal::new();
        let cli = mainstem("run Dig").env("OPENAI_BASE_URL", &server.url()).file("mainstem.toml", ASKING);
        let mut running = on(&terminal, cli.stdin(terminal.line()));
        terminal.until("main wants to run agent_spawn {\"agent_id\":\"general-purpose\"");
        terminal.until("n [reason]: no");
        terminal.type_in(typed);
        let (code, screen) = terminal.end(&mut running);
        assert_eq!(code, Some(0), "{screen}");
        assert!(screen.trim_end().ends_with(reply), "{screen}");
    }
}

/// The root writes two files and runs a command; then it tells what it read of that.
pub(crate) fn changing() -> Server {
    Server::start(|request| {
        let messages = request["messages"].as_array().unwrap();
        let text = messages.last().unwrap()["content"].to_string();
        let write = |path: &str| ("write_file", json!({ "path": path, "content": "one\ntwo\n" }));
        match messages.iter().filter(|message| message["role"] == "assistant").count() {
            0 => vec![Step::Call(vec![write("a.txt")])],
            1 => vec![Step::Call(vec![("shell", json!({ "command": "cat a.txt" }))])],
            2 => vec![Step::Call(vec![("edit_file", json!({ "path": "a.txt", "old": "two", "new": "2" }))])],
            _ => vec![Step::Text(Box::leak(format!("It ended: {text}").into_boxed_str()))],
        }
    })
}

#[test]
fn a_change_is_asked_about_once_and_what_is_always_allowed_never_again() {
    let server = changing();
    let terminal = Terminal::new();
    let home = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let cli = mainstem("run --shell Go").env("OPENAI_BASE_URL", &server.url()).env("TERM", "xterm");
        cli.env("HOME", home.path().to_str().unwrap()).within(folder.path())
    };
    let mut running = on(&terminal, run().stdin(terminal.line()));
    terminal.until("main wants to write a.txt:");
    terminal.until("+ two");
    terminal.type_in("a\r");
    terminal.until("always allowed here: write_file(path: a.txt)");
    terminal.until("  cat a.txt");
    terminal.type_in("a shell\r");
    terminal.until("- two");
    terminal.type_in("nx\u{7f} not so\r");
    let (code, screen) = terminal.end(&mut running);
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("denied main: edit_file a.txt") && screen.contains("not so"), "{screen}");
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "one\ntwo\n");

    let terminal = Terminal::new();
    let mut running = on(&terminal, run().stdin(terminal.line()));
    terminal.until("main wants to change a.txt:");
    terminal.type_in("y\r");
    let (code, screen) = terminal.end(&mut running);
    assert_eq!(code, Some(0), "{screen}");
    assert!(!screen.contains("wants to write") && !screen.contains("wants to run"), "{screen}");
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "one\n2\n");

    // What is allowed in one folder is asked about in another.
    let terminal = Terminal::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut running = on(&terminal, run().within(elsewhere.path()).stdin(terminal.line()));
    for question in ["main wants to write a.txt:", "  cat a.txt", "main wants to change a.txt:"] {
        terminal.until(question);
        terminal.type_in("n\r");
    }
    assert_eq!(terminal.end(&mut running).0, Some(0));
    assert!(!elsewhere.path().join("a.txt").exists());
}

#[test]
fn a_person_is_asked_although_something_is_piped_in() {
    let server = changing();
    let terminal = Terminal::new();
    let folder = tempfile::tempdir().unwrap();
    let script = "echo context | exec \"$MAINSTEM\" run --shell Go";
    // In a session whose terminal this is.
    let cli =
        program("setsid", &["--ctty", "--wait", "sh", "-c", script]).env("OPENAI_BASE_URL", &server.url());
    let cli = cli.env("MAINSTEM", env!("CARGO_BIN_EXE_mainstem")).within(folder.path());
    let mut running = on(&terminal, cli.stdin(terminal.line()));
    terminal.until("main wants to write a.txt:");
    terminal.type_in("n not there\r");
    terminal.until("  cat a.txt");
    terminal.type_in("n\r");
    terminal.until("main wants to change a.txt:");
    terminal.type_in("n\r");
    let (code, screen) = terminal.end(&mut running);
    assert!(code == Some(0) && screen.contains("8 bytes of stdin follow the PROMPT"), "{screen}");
    assert!(!folder.path().join("a.txt").exists(), "{screen}");

    // A prompt that is typed ends with Ctrl-D.
    let terminal = Terminal::new();
    let cli = mainstem("run --shell -").env("OPENAI_BASE_URL", &server.url()).within(folder.path());
    let mut running = on(&terminal, cli.stdin(terminal.line()));
    terminal.type_in("Go\r\x04");
    for question in ["main wants to write a.txt:", "  cat a.txt", "main wants to change a.txt:"] {
        terminal.until(question);
        terminal.type_in("n\r");
    }
    assert_eq!(terminal.end(&mut running).0, Some(0));

    // Where no question can be put, that is said, and by default tools run.
    let terminal = Terminal::new();
    let cli = mainstem("run --shell Go").env("OPENAI_BASE_URL", &server.url()).within(folder.path());
    let mut running = on(&terminal, cli.stdin(std::process::Stdio::null()));
    terminal.until("you are not asked before a tool changes something");
    let (code, screen) = terminal.end(&mut running);
    assert_eq!(code, Some(0), "{screen}");
}

#[test]
fn a_rule_asks_each_time_whatever_is_allowed() {
    let server = changing();
    let terminal = Terminal::new();
    let config = "[permissions]\nask = ['edit_file']\n";
    let cli = mainstem("run --shell Go").env("OPENAI_BASE_URL", &server.url()).file("mainstem.toml", config);
    let mut running = on(&terminal, cli.stdin(terminal.line()));
    terminal.until("main wants to write a.txt:");
    terminal.type_in("a *\r");
    terminal.until("by the rule edit_file");
    terminal.type_in("a\r");
    terminal.until("the rule edit_file asks each time");
    terminal.type_in("y\r");
    let (code, screen) = terminal.end(&mut running);
    assert_eq!(code, Some(0), "{screen}");
    assert!(
        screen.contains("allowed main: edit_file a.txt") && !screen.contains("run a command"),
        "{screen}"
    );
}

#[test]
fn a_line_that_is_begun_survives_a_question_of_a_chat() {
    let server = Server::start(|request| {
        let messages = request["messages"].as_array().unwrap();
        let last = messages.last().unwrap()["content"].to_string();
        match messages.last().unwrap()["role"].as_str().unwrap() {
            "user" if last.contains("Write") => {
                std::thread::sleep(Duration::from_millis(500));
                vec![Step::Call(vec![("write_file", json!({ "path": "a.txt", "content": "x" }))])]
            }
            "user" => vec![Step::Text(Box::leak(format!("You said {last}.").into_boxed_str()))],
            _ => {
                std::thread::sleep(Duration::from_millis(500));
                vec![Step::Text("It is written.")]
            }
        }
    });
    let terminal = Terminal::new();
    let cli = mainstem("chat").env("OPENAI_BASE_URL", &server.url()).env("TERM", "xterm");
    let mut running = on(&terminal, cli.stdin(terminal.line()));
    terminal.until("> ");
    terminal.type_in("Write it\r");
    terminal.until("waits for its model");
    terminal.type_in("half");
    terminal.until("> half_");
    terminal.until("main wants to write a.txt");
    assert!(!terminal.screen().contains("half"), "{}", terminal.screen());
    terminal.type_in("y\r");
    terminal.until("> half_");
    assert!(!terminal.screen().contains("wants to"), "{}", terminal.screen());
    terminal.type_in("\u{4}");
    terminal.type_in(" a line\r");
    terminal.until("after this turn: half a line");
    terminal.until("You said \"half a line\".");
    terminal.type_in("/quit\r");
    assert_eq!(terminal.end(&mut running).0, Some(0));
}

#[test]
fn what_is_for_now_enters_the_turn_of_a_chat_and_the_rest_follows_it() {
    let server = Server::start(|request| {
        let messages = request["messages"].as_array().unwrap();
        let heard: Vec<_> = messages.iter().filter(|one| one["role"] == "user").collect();
        match &*heard.last().unwrap()["content"].to_string() {
            "\"Paint\"" => vec![Step::Text("I paint it red."), Step::Gate],
            last => vec![Step::Text(Box::leak(format!("You said {last}.").into_boxed_str()))],
        }
    });
    let terminal = Terminal::new();
    let cli = mainstem("chat --no-files").env("OPENAI_BASE_URL", &server.url()).env("TERM", "xterm");
    let mut running = on(&terminal, cli.stdin(terminal.line()));
    terminal.until("> ");
    terminal.type_in("Paint\r");
    terminal.until("I paint it red.");
    // What changes nothing is shown at once.
    terminal.type_in("/agents\r");
    terminal.until("no agent was spawned yet");
    terminal.type_in("/agnets\r");
    terminal.until("did you mean /agents?");
    terminal.type_in("And then?\r");
    terminal.until("after this turn: And then?; /now TEXT is read within it");
    terminal.type_in("/now rather blue\r");
    terminal.until("told the agent: rather blue");
    server.open_gate();
    terminal.until("You said \"rather blue\".");
    terminal.until("You said \"And then?\".");
    terminal.type_in("/quit\r");
    assert_eq!(terminal.end(&mut running).0, Some(0));
    let heard: Vec<_> = server.requests().iter().map(|request| request["messages"].to_string()).collect();
    assert_eq!(heard.len(), 3, "two calls in the first turn, one in the second");
    assert!(heard[1].contains("rather blue") && !heard[1].contains("And then?"), "{heard:?}");
}

#[test]
fn a_long_paste_is_one_line() {
    let server = changing();
    let terminal = Terminal::new();
    let cli = mainstem("run --shell Go").env("OPENAI_BASE_URL", &server.url());
    let mut running = on(&terminal, cli.stdin(terminal.line()));
    terminal.until("main wants to write a.txt:");
    let content = "x".repeat(3_000);
    terminal.type_in(&format!("{{\"path\":\"b.txt\",\"content\":\"{content}\"}}\n"));
    terminal.until("allowed instead main: write_file b.txt");
    terminal.until("  cat a.txt");
    terminal.type_in("\u{4}");
    terminal.until("main wants to change a.txt:");
    terminal.type_in("n\r");
    let (code, screen) = terminal.end(&mut running);
    assert!(code == Some(0) && screen.contains("denied main: edit_file a.txt"), "{screen}");
}

#[test]
fn who_approves_can_be_chosen() {
    let check = |flags: &str, config: &str, expected: &str| {
        let server = changing();
        let cli = mainstem(&format!("run --shell {flags} Go")).env("OPENAI_BASE_URL", &server.url());
        let done = cli.file(".config/mainstem/config.toml", config).run();
        assert!(format!("{}{}", done.stdout, done.stderr).contains(expected), "{flags} {config}: {done:?}");
    };
    check("", "", "in 1 place, line 2");
    check("--approve auto", "", "in 1 place, line 2");
    check("--approve never", "", "edit_file is denied by default: the tool may change something");
    check("--approve ask", "", "--approve ask: there is no person to ask");
    check(
        "",
        "[permissions]\nchanges = 'deny'",
        "edit_file is denied by default: the tool may change something",
    );
    check("--approve auto", "[permissions]\nchanges = 'deny'", "in 1 place, line 2");
    check("--approve auto", "[permissions]\ndeny = ['edit_file']", "edit_file is denied by the rule");
}

#[test]
fn each_question_waits_for_its_own_answer_and_ctrl_d_is_no() {
    let server = Server::start(|request| {
        let text = request["messages"].to_string();
        let spawn = |task: &str| ("agent_spawn", json!({ "agent_id": "general-purpose", "task": task }));
        match () {
            () if text.contains("You are a subagent") => vec![Step::Text("Gold.")],
            () if text.contains("declined by the person") => vec![Step::Text("One and a half.")],
            () => vec![Step::Call(vec![spawn("Dig"), spawn("Fill"), spawn("Rest")])],
        }
    });
    let terminal = Terminal::new();
    let cli = mainstem("run Dig").env("OPENAI_BASE_URL", &server.url()).file("mainstem.toml", ASKING);
    let mut running = on(&terminal, cli.stdin(terminal.line()));
    terminal.until("\"Dig\"");
    terminal.until("n [reason]: no");
    // Typed twice in haste: the second is not the answer to the next question.
    terminal.type_in("y\ny\n");
    terminal.until("\"Fill\"");
    std::thread::sleep(Duration::from_millis(200));
    assert!(!terminal.screen().contains("\"Rest\""), "{}", terminal.screen());
    terminal.type_in("\u{4}");
    terminal.until("\"Rest\"");
    terminal.type_in("\u{4}");
    let (code, screen) = terminal.end(&mut running);
    assert_eq!(code, Some(0), "{screen}");
    assert!(
        screen.matches("denied main: agent_spawn").count() == 2
            && screen.trim_end().ends_with("One and a half."),
        "{screen}"
    );
}

#[test]
fn without_a_terminal_the_answer_is_no_and_that_is_said() {
    let server = spawning();
    let cli = mainstem("run --progress plain Dig")
        .env("OPENAI_BASE_URL", &server.url())
        .file("mainstem.toml", ASKING);
    let running = cli.start();
    let done = running.done();
    assert!(done.stderr.contains("agent_spawn denied"), "{done:?}");
    let asked = server
        .requests()
        .iter()
        .filter(|request| request.to_string().contains("it needs approval, and the run is unattended"))
        .count();
    assert!(asked > 0, "the model is told");
}

/// A chat with a model that repeats what it hears.
fn chat() -> (Server, Cli) {
    let server = Server::start(|request| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        vec![Step::Text(Box::leak(format!("You said {}.", last["content"]).into_boxed_str()))]
    });
    let cli = mainstem("chat --no-files").env("OPENAI_BASE_URL", &server.url()).env("TERM", "xterm");
    (server, cli)
}

/// Waits until a process is stopped, or is not.
pub(crate) fn until_stopped(running: &Running, expected: bool) {
    let started = Instant::now();
    let is_stopped = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", running.id())).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('T')
    };
    while is_stopped() != expected {
        assert!(started.elapsed() < Duration::from_secs(20), "stopped: {}", !expected);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ctrl-Z between two turns, and the signal of another process: the shell gets a terminal that
/// echoes, and the editor goes on with its line.
#[test]
#[cfg(target_os = "linux")]
fn a_chat_stops_at_its_prompt_and_goes_on() {
    use rustix::termios::{LocalModes, tcgetattr};
    let (_server, cli) = chat();
    let terminal = Terminal::new();
    let mut running = on(&terminal, cli.stdin(terminal.line()));
    terminal.until("> ");
    for by_key in [true, false] {
        terminal.type_in("Hel");
        terminal.until("> Hel");
        let raw = tcgetattr(&terminal.line).unwrap().local_modes;
        assert!(!raw.contains(LocalModes::ICANON));
        if by_key {
            terminal.type_in("\u{1a}");
        } else {
            running.signal("TSTP");
        }
        until_stopped(&running, true);
        let shell = tcgetattr(&terminal.line).unwrap().local_modes;
        assert!(shell.contains(LocalModes::ICANON | LocalModes::ECHO), "{shell:?}");
        running.signal("CONT");
        until_stopped(&running, false);
        terminal.type_in("lo\r");
        terminal.until("You said \"Hello\".");
        terminal.until_last(">");
    }
    // A turn is not stopped by what happened before it.
    terminal.type_in("Bye\r");
    terminal.until("You said \"Bye\".");
    terminal.type_in("/quit\r");
    assert_eq!(terminal.end(&mut running).0, Some(0));
}

#[test]
fn a_chat_has_an_editor_with_a_history() {
    let (_server, cli) = chat();
    let terminal = Terminal::new();
    let mut running = on(&terminal, cli.stdin(terminal.line()));
    terminal.until("> ");
    terminal.type_in("/he\t\r");
    terminal.until("/compact  shorten the conversation");
    // A menu of what begins so.
    terminal.type_in("/a\t");
    terminal.until("/agents   list the children");
    terminal.until("/attach   send FILE");
    terminal.type_in("\u{15}");
    // A correction, and two lines of one turn.
    terminal.type_in("Helo\u{2}l\u{5}\u{1b}\rthere\r");
    terminal.until("You said \"Hello\\nthere\".");
    // The last turn again, from the history; then a paste.
    terminal.type_in("\u{1b}[A again\r");
    terminal.until("You said \"Hello\\nthere again\".");
    terminal.type_in("\u{1b}[200~one\ntwo\u{1b}[201~\r");
    terminal.until("You said \"one\\ntwo\".");
    // A key that is typed before the editor reads is not its own.
    terminal.until_last(">");
    terminal.type_in("\u{3}");
    terminal.until("press Ctrl-C again to leave");
    terminal.type_in("\u{3}");
    let (code, screen) = terminal.end(&mut running);
    assert_eq!(code, Some(130), "{screen}");
}

#[test]
fn ctrl_c_cancels_a_turn_of_a_chat_with_an_editor() {
    let server = Server::start(|request| match request["messages"].as_array().unwrap().len() {
        ..=2 => vec![Step::Text("Hello.")],
        _ => vec![Step::Hang],
    });
    let cli = mainstem("chat --no-files").env("OPENAI_BASE_URL", &server.url()).env("TERM", "xterm");
    let terminal = Terminal::new();
    let mut running = on(&terminal, cli.stdin(terminal.line()));
    terminal.until("> ");
    terminal.type_in("one\r");
    terminal.until("Hello.");
    terminal.type_in("two\r");
    terminal.until("waits for its model");
    running.signal("INT");
    terminal.until("cancelling the turn");
    terminal.until("error: cancelled by the user (Ctrl-C)");
    terminal.type_in("/quit\r");
    assert_eq!(terminal.end(&mut running).0, Some(0));
}

#[test]
fn a_chat_gives_the_terminal_its_mode_back() {
    let (_server, cli) = chat();
    let terminal = Terminal::new();
    let keys = terminal.keys.try_clone().unwrap();
    let mode = || rustix::termios::tcgetattr(&keys).unwrap().local_modes;
    let before = mode();
    let mut running = on(&terminal, cli.stdin(terminal.line()));
    terminal.until("> ");
    assert_ne!(mode(), before, "a line is edited");
    running.signal("TERM");
    let (code, screen) = terminal.end(&mut running);
    assert_eq!((code, mode()), (Some(143), before), "{screen}");
}

#[test]
fn without_a_command_it_is_a_chat() {
    let terminal = Terminal::new();
    let mut running = on(&terminal, mainstem("").stdin(terminal.line()));
    terminal.until("the demo plays a script, whatever you say; it is not recorded");
    terminal.type_in("/quit\r");
    let (code, screen) = terminal.end(&mut running);
    assert_eq!(code, Some(0), "{screen}");
    let done = mainstem("").run();
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("Usage: mainstem"), "{done:?}");
}
