//! `mainstem man`: the manual pages, made from the help of the commands.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use anyhow::Context;
use clap::CommandFactory;

use crate::{
    args::Cli,
    exit::{Exit, Fault, OrExit},
};

pub(crate) fn run(dir: Option<&Path>) -> Result<Exit, Fault> {
    match dir {
        Some(dir) => write(dir).or_exit(Exit::Failed)?,
        None => {
            let mut page = Vec::new();
            let command = Cli::command().disable_help_subcommand(true);
            clap_mangen::Man::new(command).render(&mut page).or_exit(Exit::Failed)?;
            // A reader that is gone wanted no more.
            let _ = io::stdout().write_all(&page);
        }
    }
    Ok(Exit::Reply)
}

/// Writes `mainstem.1`, `mainstem-run.1` and so on.
fn write(dir: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("can't create {}", dir.display()))?;
    clap_mangen::generate_to(Cli::command(), dir).with_context(|| format!("can't write to {}", dir.display()))
}
