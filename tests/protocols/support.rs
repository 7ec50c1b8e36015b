//! Our server with scripted agents, and programs of others in node and Python.

use std::{
    env,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use mainstem::prelude::*;
use mainstem_server::{Protocol, Server, Tokens};
use tokio_util::sync::CancellationToken;

/// Set by `.ci/run`, which installs what the folders of tests/protocols list: a directory with one
/// folder for each of them, which has `node_modules`, `python`, or both.
const PROTOCOLS: &str = "MAINSTEM_PROTOCOLS";

/// The token of the servers of these tests.
pub(crate) const TOKEN: &str = "secret-of-the-tests";

/// How long a program of others may take.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A folder of tests/protocols, and where its packages are.
pub(crate) struct Folder {
    pub(crate) scripts: PathBuf,
    pub(crate) packages: PathBuf,
}

impl Folder {
    /// Returns the folder of a protocol; `None` if its packages are not installed, which only a
    /// person's own machine may lack: the test that asks prints that, and is over.
    pub(crate) fn find(name: &str) -> Option<Self> {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("protocols").join(name);
        let Some(all) = env::var_os(PROTOCOLS).map(PathBuf::from) else {
            assert!(env::var_os("CI").is_none(), "{PROTOCOLS} does not name the packages of tests/protocols");
            let _ = writeln!(std::io::stderr(), "skipped: {name}: {PROTOCOLS} is not set");
            return None;
        };
        Some(Self { scripts, packages: all.join(name) })
    }

    /// Returns a command that runs a script of the folder: in node if it ends with `.mjs`, else in
    /// Python. The script finds the packages of its folder.
    pub(crate) fn command(&self, script: &str) -> Command {
        if script.ends_with(".mjs") {
            // A module is resolved from the place of its file, which is where the packages are.
            let copy = self.packages.join(script);
            // Put there at once, because another test may be reading the file.
            let whole = tempfile::NamedTempFile::new_in(&self.packages).unwrap();
            std::fs::copy(self.scripts.join(script), whole.path()).unwrap();
            whole.persist(&copy).unwrap();
            let mut node = Command::new("node");
            node.arg(copy);
            return node;
        }
        let mut python = Command::new(self.packages.join("python/bin/python"));
        python.arg(self.scripts.join(script));
        python
    }

    /// Runs a script with the address of a server and its token, and returns what it prints.
    pub(crate) async fn run(&self, script: &str, url: &str) -> String {
        let mut command = self.command(script);
        command.args([url, TOKEN]).stdin(Stdio::null());
        let work = tokio::task::spawn_blocking(move || command.output().unwrap());
        let output = tokio::time::timeout(TIMEOUT, work).await.expect("the script ends in time").unwrap();
        let (said, why) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{script} failed\n{said}\n{why}");
        said.into_owned()
    }
}

/// A server in this process, which stops when it is dropped.
pub(crate) struct Served {
    pub(crate) url: String,
    stop: CancellationToken,
}

impl Served {
    /// Serves a harness with these protocols on the loopback.
    pub(crate) async fn start(harness: &Harness, protocols: &[Protocol]) -> Self {
        let server = Server::new(harness.clone()).with_tokens(Tokens::new().with_token(TOKEN, None).unwrap());
        let server = protocols.iter().fold(server, |server, one| server.with_protocol(*one)).build().unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        #[expect(clippy::disallowed_methods, reason = "ends when the test stops the server")]
        tokio::spawn(async move { server.serve(listener, stopping).await.unwrap() });
        Self { url, stop }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
