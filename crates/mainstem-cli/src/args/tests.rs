//! The command line as written, and as read.

use std::time::Duration;

use clap::CommandFactory;
use mainstem::policy::Cost;
use regex::Regex;

use super::*;
use crate::{book::blocks, config::Setting};

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

/// The words of a shell's line, without comments.
fn words(line: &str) -> Vec<String> {
    let word = Regex::new(r#""([^"]*)"|'([^']*)'|(#.*)|(\S+)"#).unwrap();
    let words = word.captures_iter(line).filter(|word| word.get(3).is_none());
    words.map(|word| word.iter().skip(1).flatten().next().unwrap().as_str().to_owned()).collect()
}

#[test]
fn the_commands_of_the_book_are_commands() {
    let mut count = 0;
    for (page, block) in blocks("sh") {
        for line in block.replace("\\\n", " ").lines() {
            let words = words(line);
            let pieces = words.split(|word| matches!(word.as_str(), "|" | "&&" | ";" | "--"));
            for piece in pieces.filter(|piece| piece.first().is_some_and(|first| first == "mainstem")) {
                let to_file = piece.iter().position(|word| word.starts_with('>'));
                let read = Cli::try_parse_from(&piece[..to_file.unwrap_or(piece.len())]);
                assert!(read.is_ok(), "{page}: {line}\n{}", read.unwrap_err());
                count += 1;
            }
        }
    }
    // A package stands alone, without the book.
    assert!(count > 30 || blocks("sh").is_empty(), "{count}");
}

#[test]
fn values_are_read() {
    let line = "mainstem run --budget-tokens 9 --budget-cost 0.5 -a tester -m demo -w dir --max-turns 3 --timeout 1m30s --grace 0s --color never -";
    let cli = Cli::parse_from(line.split(' '));
    let Some(Command::Run(run)) = cli.command else { panic!("{cli:?}") };
    assert_eq!(cli.color, Color::Never);
    let said = |name: &str| Some(Setting::new(name.to_owned(), "--model"));
    assert_eq!((run.agent.as_deref(), &run.settings.model), (Some("tester"), &said("demo")));
    let budget = run.settings().budget.of_run();
    assert_eq!((budget.tokens, budget.cost), (Some(9), Some(Cost::from_micros(500_000))));
    assert_eq!(run.prompt, ["-"]);
    assert_eq!((run.timeout, run.grace), (Some(Duration::from_secs(90)), Duration::ZERO));
    assert_eq!((run.output, run.progress.mode(), run.demo_pace), (Format::Text, Mode::Auto, 1.0));
}

#[test]
fn an_invalid_id_is_refused_with_its_flag() {
    let allowed = "use 1 to 256 ASCII letters, digits and -_.:~, not beginning with a dot";
    let check = |args: &[&str], flag: &str, expected: &str| {
        let error = Cli::try_parse_from([&["mainstem"], args].concat()).unwrap_err().to_string();
        let expected = format!("for '{flag}': invalid {expected}; {allowed}");
        assert!(error.contains(&expected), "{args:?}: {error}");
    };
    check(
        &["run", "--session", "acme/s", "Hi"],
        "--session <ID>",
        "session id \"acme/s\": '/' at character 5",
    );
    check(&["chat", "--session", "a b"], "--session <ID>", "session id \"a b\": ' ' at character 2");
    check(&["tasks", "show", "../x"], "<ID>", "task id \"../x\": '.' at character 1");
    check(&["tasks", "list", "--session", "é"], "--session <ID>", "session id \"é\": 'é' at character 1");
    check(&["sessions", "show", "a b"], "<ID>", "session id \"a b\": ' ' at character 2");
    // A journal on this machine has those of tenants.
    for line in ["sessions show acme/s", "sessions rm s acme/s", "sessions export acme/s", "attach acme/s"] {
        Cli::try_parse_from(["mainstem"].into_iter().chain(line.split(' '))).unwrap();
    }
}

#[test]
fn a_server_takes_no_settings_but_the_model_and_the_limits_of_a_run() {
    let check = |flags: &str, is_taken: bool| {
        for command in ["run Hi", "chat"] {
            let line = format!("mainstem {command} --server http://x {flags}");
            let read = Cli::try_parse_from(line.split(' '));
            assert_eq!(read.is_ok(), is_taken, "{line}");
        }
    };
    check("--max-agent-depth 1 --max-children 2 --budget-tokens 9 --budget-cost 1 -m m", true);
    for flags in [
        "-w x",
        "--no-files",
        "--shell",
        "--shell-network off",
        "--shell-limit cpu=1m",
        "--max-turns 1",
        "--max-tasks 1",
        "--child-wait 1s",
        "--idle-timeout 1s",
        "--journal x",
    ] {
        check(flags, false);
    }
}

#[test]
fn run_chat_and_serve_take_the_same_settings() {
    let settings = Settings::augment_args(clap::Command::new(""));
    let cli = Cli::command();
    for name in ["run", "chat", "serve", "tools", "doctor"] {
        let command = cli.find_subcommand(name).unwrap();
        for flag in settings.get_arguments() {
            assert!(command.get_arguments().any(|arg| arg.get_id() == flag.get_id()), "{name} {flag}");
        }
    }
}

/// `clap` breaks longer lines where the terminal ends, and an example that is broken can't be
/// copied.
#[test]
fn what_stands_below_a_help_fits_80_columns() {
    fn check(command: &clap::Command) -> usize {
        let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in below.lines() {
            assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
        }
        below.lines().count() + command.get_subcommands().map(check).sum::<usize>()
    }
    assert!(check(&Cli::command()) > 100);
}
