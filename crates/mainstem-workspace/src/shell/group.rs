//! A command and everything it starts, as one thing that can be ended.

use std::{
    io,
    path::Path,
    process::{ExitStatus, Stdio},
    thread,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    net::unix::pipe::Receiver,
    process::{Child, Command},
    runtime::Handle,
    sync::oneshot,
};

use super::{Confinement, ShellOptions, confine::Rules};

/// A command that runs. Dropped, it is killed with all processes of its group.
#[derive(Debug)]
pub(crate) struct Group {
    child: Child,
    /// Until the group was killed; its number may belong to somebody else then.
    id: Option<Pid>,
}

impl Group {
    fn new(child: Child) -> Self {
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Self { child, id }
    }

    /// Waits for the command itself, and then ends what it left behind.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.kill();
        status
    }

    /// Ends every process of the group, at once. One that made itself a group of its own is not reached.
    pub(crate) fn kill(&mut self) {
        if let Some(id) = self.id.take() {
            // It fails where nobody is left.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a command; its output and its errors come through one pipe, in the order they were written.
pub(crate) async fn start(
    command: &str,
    dir: &Path,
    options: &ShellOptions,
) -> io::Result<(Group, Receiver, Confinement)> {
    let (reader, writer) = io::pipe()?;
    let reader = Receiver::from_owned_fd(reader.into())?;
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", command])
        .current_dir(dir)
        .env_clear()
        .envs(options.environment(dir))
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0)
        .kill_on_drop(true);
    let (group, confinement) = spawn(shell, Rules::new(dir, options)).await?;
    Ok((group, reader, confinement))
}

/// The kernel's rules hold for a thread and what it starts, for ever: so each command is started by a thread of its own, which then ends.
async fn spawn(mut shell: Command, rules: Rules) -> io::Result<(Group, Confinement)> {
    let runtime = Handle::current();
    let (send, receive) = oneshot::channel();
    thread::Builder::new().name("mainstem-shell".to_owned()).spawn(move || {
        let _entered = runtime.enter();
        let started = rules.restrict_thread().and_then(|confinement| {
            let group = Group::new(shell.spawn()?);
            Ok((group, confinement))
        });
        // Nobody waits any more: the group is dropped, and so killed.
        let _ = send.send(started);
    })?;
    receive.await.unwrap_or_else(|_| Err(io::Error::other("the thread that starts the command panicked")))
}
