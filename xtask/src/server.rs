//! A server of ours that runs during a check: it prints its address first.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, ensure};

/// Ended when dropped: by the end of its standard input, or else killed.
pub(crate) struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts it and waits for its address.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server =
            Self { child: command.spawn().context("cannot start a server")?, url: String::new() };
        let stdout = server.child.stdout.take().context("the server has no stdout")?;
        BufReader::new(stdout).read_line(&mut server.url)?;
        ensure!(server.url.starts_with("http://"), "the server did not say where it is: {:?}", server.url);
        Ok(server)
    }

    pub(crate) fn url(&self) -> &str {
        self.url.trim()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // The result does not matter.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
