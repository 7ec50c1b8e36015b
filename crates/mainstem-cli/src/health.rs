//! `mainstem health`: asks a server if runs can begin.

use anyhow::anyhow;
use tokio::time::timeout;

use crate::{
    args::Health,
    exit::{Exit, Fault, OrExit},
    host,
    print::print,
};

pub(crate) fn run(args: &Health) -> Result<Exit, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_exit(Exit::Failed)?;
    let server = mainstem::client::Server::at(&args.server).or_exit(Exit::Usage)?;
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
