//! A run at a terminal is recorded, so that a person can return to it.

use crate::{
    server::{Server, Step},
    support::{Cli, mainstem},
    terminal::{Terminal, on},
};

/// A model that hangs in its first answer, and has a second one.
fn cut() -> Server {
    Server::start(|request| {
        let said = request["messages"].to_string();
        match said.contains("Half") {
            true => vec![Step::Text(" and the other half.")],
            false => vec![Step::Text("Half"), Step::Hang],
        }
    })
}

/// Runs a command until its answer has begun, and cancels it. Returns its screen.
fn cancelled(cli: Cli) -> String {
    let terminal = Terminal::new();
    let mut running = on(&terminal, cli.stdin(terminal.line()));
    terminal.until("Half");
    terminal.type_in("\u{3}");
    running.signal("INT");
    let (code, screen) = terminal.end(&mut running);
    assert_eq!(code, Some(130), "{screen}");
    screen
}

#[test]
fn every_run_that_a_person_cancels_can_be_resumed() {
    let server = cut();
    let home = tempfile::tempdir().unwrap();
    let cli = |line: &str| {
        let cli = mainstem(line).env("OPENAI_BASE_URL", &server.url());
        cli.env("HOME", home.path().to_str().unwrap())
    };
    let screen = cancelled(cli("run --no-files Paint"));
    let offer = screen.split_once("to resume it: mainstem ").expect(&screen).1.trim().replace('\n', "");
    assert!(offer.starts_with("run --session ") && offer.ends_with(" --resume"), "{offer}");
    let done = cli(&offer).run();
    assert_eq!((done.code, done.stdout.trim()), (Some(0), "Half and the other half."), "{done:?}");
    let done = cli("run --continue Again").run();
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(cli("sessions list").run().stdout.lines().count(), 2, "a heading and one session");

    // Neither is recorded.
    let screen = cancelled(cli("run --no-files --ephemeral Paint"));
    assert!(!screen.contains("to resume it"), "{screen}");
    let piped = cli("run --no-files Paint").start();
    server.until_hanging(3);
    piped.signal("INT");
    let done = piped.done();
    assert!(done.code == Some(130) && !done.stderr.contains("to resume it"), "{done:?}");
    assert_eq!(cli("sessions list").run().stdout.lines().count(), 2);
}

/// A run without `--session` goes on where it can't be recorded.
#[test]
fn a_run_that_can_not_be_recorded_says_so_and_goes_on() {
    let server = Server::start(|_| vec![Step::Text("Hello.")]);
    let terminal = Terminal::new();
    let cli = mainstem("run --no-files Hi").env("OPENAI_BASE_URL", &server.url());
    let cli = cli.file("file", "").env("XDG_DATA_HOME", "/dev/null/data");
    let mut running = on(&terminal, cli.stdin(terminal.line()));
    let (code, screen) = terminal.end(&mut running);
    assert!(code == Some(0) && screen.contains("warning: the run is not recorded"), "{screen}");
    assert!(screen.contains("Hello."), "{screen}");
}

const MARKDOWN: &str = "## Verdict\n\nIt is **fine**.\n";

/// The reply is rendered where stdout is a terminal, wherever stderr goes.
#[test]
fn markdown_is_rendered_unless_it_is_to_be_raw() {
    let server = Server::start(|_| vec![Step::Text(MARKDOWN)]);
    let check = |line: &str, is_stderr_a_terminal: bool, expected: &str, other: &str| {
        let terminal = Terminal::new();
        let cli = mainstem(line).env("OPENAI_BASE_URL", &server.url()).env("TERM", "xterm-256color");
        let folder = tempfile::tempdir().unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let cli = cli.stdin(terminal.line());
        let mut running = match is_stderr_a_terminal {
            true => on(&terminal, cli),
            false => cli.streams(terminal.line(), log).spawn(),
        };
        let (code, screen) = terminal.end(&mut running);
        assert_eq!(code, Some(0), "{screen}");
        assert!(screen.contains(expected) && !screen.contains(other), "{line}: {screen}");
    };
    for is_stderr_a_terminal in [true, false] {
        check("run --no-files Hi", is_stderr_a_terminal, "It is fine.", "**");
        check("run --no-files --raw Hi", is_stderr_a_terminal, "It is **fine**.", "is fine");
    }
    let piped = mainstem("run --no-files Hi").env("OPENAI_BASE_URL", &server.url()).run();
    assert_eq!(piped.stdout, MARKDOWN);
}

/// With stderr in a file, no question can be put; that is shown on the screen, and not in the file.
#[test]
#[cfg(target_os = "linux")]
fn a_person_is_told_on_the_screen_that_no_question_will_come() {
    let server = Server::start(|_| vec![Step::Text("Hello.")]);
    let terminal = Terminal::new();
    let script = "exec \"$MAINSTEM\" run --no-files Hi 2> log";
    let cli = crate::support::program("setsid", &["--ctty", "sh", "-c", script]);
    let cli = cli.env("OPENAI_BASE_URL", &server.url()).env("MAINSTEM", env!("CARGO_BIN_EXE_mainstem"));
    let dir = cli.dir.path().to_owned();
    let mut running = on(&terminal, cli.stdin(terminal.line()));
    terminal.until("you are not asked before a tool changes something");
    terminal.until("Hello.");
    let log = std::fs::read_to_string(dir.join("log")).unwrap();
    assert!(!log.contains("you are not asked"), "{log}");
    assert_eq!(terminal.end(&mut running).0, Some(0));
}
