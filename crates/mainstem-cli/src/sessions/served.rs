//! The commands about sessions that only a server answers.

use anyhow::anyhow;

use super::{links, live};
use crate::{
    args::ServedCommand,
    exit::{Exit, Fault, OrExit},
    host, signals,
    terminal::Terminal,
};

pub(super) fn run(server: Option<&str>, command: &ServedCommand, terminal: Terminal) -> Result<Exit, Fault> {
    let no_server = || anyhow!("only a server answers this command: name it, with --server URL");
    let server = host::server(server).or_exit(Exit::Usage)?.ok_or_else(no_server).or_exit(Exit::Usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let mut signals = signals::watch().or_exit(Exit::Failed)?;
    runtime.block_on(async {
        let done = async {
            match command {
                ServedCommand::Live { all, output } => live::follow(&server, *all, *output, terminal).await,
                ServedCommand::Share { id, lasts, through, output } => {
                    links::share(&server, id, *lasts, *through, *output, terminal).await
                }
                ServedCommand::Links { id, output } => links::list(&server, id, *output).await,
                ServedCommand::Revoke { id, links } => links::revoke(&server, id, links, terminal).await,
            }
        };
        tokio::select! {
            signal = signals.next() => Ok(signal.exit()),
            done = done => done.map(|()| Exit::Reply),
        }
    })
}
