//! The command line as written, and as read.

use clap::CommandFactory;

use super::*;

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn values_are_read() {
    let line =
        "mainstem run -a tester -m demo -w dir --max-turns 3 --timeout 1m30s --grace 0s --color never -";
    let cli = Cli::parse_from(line.split(' '));
    let Command::Run(run) = cli.command else { panic!("{cli:?}") };
    assert_eq!(cli.color, Color::Never);
    assert_eq!((run.agent.as_deref(), run.model.as_deref()), (Some("tester"), Some("demo")));
    assert_eq!(run.prompt.as_deref(), Some("-"));
    assert_eq!((run.timeout, run.grace), (Some(Duration::from_secs(90)), Duration::ZERO));
    assert_eq!((run.output, run.progress, run.demo_pace), (Format::Text, Mode::Auto, 1.0));
}
