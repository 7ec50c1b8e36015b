//! `mainstem health`: asks a server if runs can begin.

use anyhow::anyhow;
use mainstem::client::Server;
use tokio::time::timeout;

use crate::{
    args::Health,
    command_line::SERVER,
    config::var,
    exit::{Exit, Fault, OrExit},
    host,
    print::print,
};

/// Where `mainstem serve` listens by default.
const DEFAULT: &str = "http://127.0.0.1:7878";

pub(crate) fn run(args: &Health) -> Result<Exit, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let address = args.address.clone().or_else(|| var(SERVER));
    let server = Server::at(address.as_deref().unwrap_or(DEFAULT)).or_exit(Exit::Usage)?;
    runtime.block_on(async {
        let late =
            || anyhow!("{}: no response in {}", server.address(), humantime::format_duration(args.timeout));
        match timeout(args.timeout, server.ready()).await {
            Ok(ready) => ready.map_err(host::advised).or_exit(Exit::Failed)?,
            Err(_) => return Err(late()).or_exit(Exit::Failed),
        }
        print(&format!("{} can begin runs\n", server.address()))?;
        Ok(Exit::Reply)
    })
}
