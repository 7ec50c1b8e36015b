//! The command line as written, and as read.

use clap::CommandFactory;

use super::*;

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn values_are_read() {
    let line = "mainstem run --budget-tokens 9 --budget-cost 0.5 -a tester -m demo -w dir --max-turns 3 --timeout 1m30s --grace 0s --color never -";
    let cli = Cli::parse_from(line.split(' '));
    let Command::Run(run) = cli.command else { panic!("{cli:?}") };
    assert_eq!(cli.color, Color::Never);
    assert_eq!((run.agent.as_deref(), run.model.as_deref()), (Some("tester"), Some("demo")));
    assert_eq!((run.budget_tokens, run.budget_cost), (Some(9), Some(Cost::from_micros(500_000))));
    assert_eq!(run.prompt.as_deref(), Some("-"));
    assert_eq!((run.timeout, run.grace), (Some(Duration::from_secs(90)), Duration::ZERO));
    assert_eq!((run.output, run.progress, run.demo_pace), (Format::Text, Mode::Auto, 1.0));
}

#[test]
fn dollars_are_read_exactly() {
    let check = |text: &str, micros: Option<u64>| {
        assert_eq!(dollars(text).ok(), micros.map(Cost::from_micros), "{text}")
    };
    check("0", Some(0));
    check("2", Some(2_000_000));
    check("$2.5", Some(2_500_000));
    check("0.000001", Some(1));
    check("1.", Some(1_000_000));
    for wrong in [
        "",
        ".",
        ".5",
        "$",
        "-1",
        "+1",
        "1e3",
        "0.0000001",
        "1.2.3",
        "1,5",
        "99999999999999999999",
        "$$1",
        "1.+5",
    ] {
        check(wrong, None);
    }
}
