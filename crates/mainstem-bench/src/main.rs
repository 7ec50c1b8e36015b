//! `cargo xtask bench`: the performance rows of `docs/performance.md`, all taken in one run so that
//! their ratios mean something.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark reports on the terminal")]

mod agents;
mod bare;
mod client;
mod fleet;
mod measure;
mod probe;
mod provider;
mod repeat;
mod rows;
mod sample;
mod script;
mod server;
mod table;
mod turns;
mod wire;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

use crate::{probe::Probe, repeat::Repeat, rows::Bench};

#[derive(Parser)]
#[command(name = "cargo xtask bench --", about, args_conflicts_with_subcommands = true)]
struct Options {
    /// The rows to take; all by default
    rows: Vec<u8>,
    /// A tenth of the work: to see that all rows run, not to compare figures
    #[arg(long)]
    quick: bool,
    /// One JSON object a figure instead of a table
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    part: Option<Part>,
}

/// What runs in a process of its own.
#[derive(Subcommand)]
enum Part {
    /// The scripted model server, until its standard input ends
    #[command(hide = true)]
    Serve,
    /// A server of agents whose models are at this address, until its standard input ends
    #[command(hide = true)]
    Agents { models: String, journal: Option<PathBuf> },
    /// A measurement that must not see what others left in memory
    #[command(hide = true, subcommand)]
    Probe(Probe),
    /// One load again and again, for a profiler
    Repeat(Repeat),
}

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns `true` if no hard row was missed. A quick run is too short to miss one.
fn run(options: Options) -> anyhow::Result<bool> {
    measure::allow_many_connections()?;
    match options.part {
        Some(Part::Serve) => server::serve().map(|()| true),
        Some(Part::Agents { models, journal }) => agents::serve(&models, journal.as_deref()).map(|()| true),
        Some(Part::Probe(probe)) => probe.run().map(|()| true),
        Some(Part::Repeat(repeat)) => repeat.run().map(|()| true),
        None => {
            let figures = rows::run(&Bench::start(options.quick)?, &options.rows)?;
            println!("{}", if options.json { table::json(&figures)? } else { table::text(&figures) });
            Ok(options.quick || !figures.iter().any(table::Figure::fails))
        }
    }
}

/// Installs the crypto provider that every client of reqwest needs.
fn install_crypto() {
    // Fails if one is installed already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
