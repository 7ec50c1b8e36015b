//! The `mainstem` binary: runs a command line, and shows what happens in a terminal.
//!
//! stdout has the result only; stderr has the progress. [`exit`] has the exit codes.

mod agents;
mod approval;
mod args;
mod attach;
mod attachments;
#[cfg(test)]
mod book;
mod chat;
mod command_line;
mod config;
mod data;
mod demo;
mod doctor;
mod exit;
mod fold;
mod go_on;
mod harness;
mod health;
mod host;
mod init;
mod jobs;
mod man;
mod markdown;
mod mcp;
mod migrate;
mod model;
mod models;
mod nodes;
mod open_files;
mod output;
mod print;
mod progress;
mod remotes;
mod replay;
mod replies;
mod run;
mod sanitize;
mod serve;
mod sessions;
mod shown_notes;
mod signals;
mod store;
mod table;
mod tasks;
mod telemetry;
mod terminal;
mod tools;
mod trust;
mod trusted;
mod watch;
#[cfg(feature = "page")]
mod web;

use std::{
    io::{self, ErrorKind, Write},
    process::{self, ExitCode},
};

use anstyle::AnsiColor;
use clap::{
    CommandFactory,
    error::{ContextKind, ContextValue},
};

use self::{
    args::{Cli, Command},
    exit::{Exit, Fault},
    terminal::Terminal,
};

fn main() -> ExitCode {
    // Agents' commands run under another process of this program.
    #[cfg(unix)]
    mainstem::guard::init();
    let arguments = std::env::args_os().collect();
    let cli = command_line::parse(arguments).unwrap_or_else(|error| refuse(&suggested(error)));
    let terminal = Terminal::detect(cli.color, cli.raw, config::var);
    let command = cli.command.unwrap_or_else(|| talk(terminal));
    let exit = match &command {
        Command::Run(args) => run::run(args, &cli.config, terminal),
        Command::Agents(args) => agents::run(args, &cli.config, terminal),
        Command::Doctor(args) => doctor::run(args, &cli.config, terminal),
        Command::Models(args) => models::run(args, &cli.config, terminal),
        Command::Tools(args) => tools::run(args, &cli.config, terminal),
        Command::Mcp(args) => mcp::run(args, &cli.config, terminal),
        Command::Serve(args) => serve::run(args, &cli.config, terminal),
        Command::Sessions(args) => sessions::run(args, &cli.config, terminal),
        Command::Replay(args) => replay::run(args, terminal),
        Command::Chat(args) => chat::run(args, &cli.config, terminal),
        Command::Attach(args) => attach::run(args, terminal),
        Command::Config(args) => config::command::run(args, &cli.config, terminal),
        Command::Init(args) => init::run(args),
        Command::Watch(args) => watch::run(args, terminal),
        Command::Tasks(args) => tasks::run(args, &cli.config, terminal),
        Command::Trust(args) => trust::run(args),
        Command::Completions { shell } => completions(*shell),
        Command::Man { dir } => man::run(dir.as_deref()),
        Command::Jobs(args) => jobs::run(args, terminal),
        Command::Worker(args) => serve::work(args, &cli.config, terminal),
        Command::Migrate(args) => migrate::run(args),
        Command::Nodes(args) => nodes::run(args),
        Command::Health(args) => health::run(args),
        Command::Version => version(),
    };
    exit.unwrap_or_else(|fault| report(&fault, terminal)).into()
}

/// Returns the command if none is given: a chat at a terminal. Elsewhere prints the help, and ends
/// the process.
fn talk(terminal: Terminal) -> Command {
    if terminal.has_person() && terminal.stdout {
        let arguments = std::env::args_os().chain(["chat".into()]).collect();
        if let Ok(Cli { command: Some(chat), .. }) = command_line::parse(arguments) {
            return chat;
        }
    }
    let mut help = Cli::command();
    let _ = write!(io::stderr(), "{}", help.render_help());
    process::exit(Exit::Usage as i32)
}

/// Adds the nearest command to an error about an unknown one, or how a task is given.
fn suggested(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let cli = Cli::command();
    let known = cli.get_subcommands().map(clap::Command::get_name);
    if let Some(near) = mainstem::spec::closest(wrong, known) {
        let near = ContextValue::Strings(vec![near.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, near);
    } else if std::env::args().nth(1).as_ref() == Some(wrong) {
        let tip = "to give an agent a task, use 'mainstem run \"TASK\"'".to_owned();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Prints why the command line is refused, or help, and ends the process.
fn refuse(error: &clap::Error) -> ! {
    let text = error.to_string();
    let clean = sanitize::clean(&text);
    let printed = match error.use_stderr() && clean != text {
        // It repeats a value, which may have control characters.
        true => write!(io::stderr(), "{clean}"),
        false => error.print(),
    };
    match printed {
        // The disk is full, for example. stderr may be closed.
        Err(why) if !error.use_stderr() && why.kind() != ErrorKind::BrokenPipe => {
            let _ = writeln!(io::stderr(), "error: {why}");
            process::exit(Exit::Failed as i32)
        }
        _ => process::exit(error.exit_code()),
    }
}

fn completions(shell: clap_complete::Shell) -> Result<Exit, Fault> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "mainstem", &mut script);
    print::print_shown(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Reply)
}

fn version() -> Result<Exit, Fault> {
    let version = concat!("mainstem ", env!("CARGO_PKG_VERSION"));
    print::print(&format!("{version} ({} {})\n", std::env::consts::ARCH, std::env::consts::OS))?;
    Ok(Exit::Reply)
}

/// Prints an error as one line.
fn report(fault: &Fault, terminal: Terminal) -> Exit {
    let text = sanitize::clean(&exit::in_one_line(&fault.error));
    let text = if terminal.ascii { sanitize::ascii(&text) } else { text };
    let style = if terminal.color { AnsiColor::Red.on_default().bold() } else { anstyle::Style::new() };
    let _ = writeln!(io::stderr(), "{style}error:{style:#} {}", text.trim_end());
    fault.hint.iter().for_each(|hint| progress::say(hint, terminal));
    fault.exit
}
