//! Processes that are not ours: where their packages are, and how they are started and ended.

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// Set by `.ci/run`, which installs what `package.json` and `requirements.txt` list: a directory
/// with `node_modules` and `python`.
const PEERS: &str = "MAINSTEM_PEERS";

/// Returns where the packages are. Only a person's own machine may lack them; the test that asks
/// says so, and is over.
pub(crate) fn packages(test: &str) -> Option<PathBuf> {
    let packages = env::var_os(PEERS).map(PathBuf::from);
    if packages.is_none() {
        assert!(
            env::var_os("CI").is_none(),
            "{PEERS} does not name the directory with the packages of tests/peers"
        );
        let _ = writeln!(std::io::stderr(), "skipped: {test}: {PEERS} is not set");
    }
    packages
}

/// A server, and the line in which it said where it listens. Ended when dropped.
pub(crate) struct Peer {
    child: Child,
    pub(crate) url: String,
}

impl Peer {
    /// Starts a program and waits until it says where it listens, on stdout or stderr.
    pub(crate) fn start(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        // From here on it is ended whatever happens.
        let mut peer = Self { child: child.unwrap(), url: String::new() };
        let (told, hears) = mpsc::channel();
        for pipe in [boxed(peer.child.stdout.take().unwrap()), boxed(peer.child.stderr.take().unwrap())] {
            let told = told.clone();
            // To the end, or the server would wait for its log to be read.
            thread::spawn(move || {
                BufReader::new(pipe).lines().map_while(Result::ok).for_each(|line| drop(told.send(line)))
            });
        }
        drop(told);
        let mut said = Vec::new();
        loop {
            match hears.recv_timeout(Duration::from_secs(60)) {
                Ok(line) => said.push(line),
                Err(error) => panic!("no address ({error}): {said:#?}"),
            }
            if let Some(url) = said.last().and_then(|line| address(line)) {
                peer.url = url;
                return peer;
            }
        }
    }

    /// Starts a program that listens there, and waits until it does.
    pub(crate) fn start_at(port: u16, command: &mut Command) -> Self {
        let child =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let peer = Self { child, url: format!("http://127.0.0.1:{port}") };
        let is_there = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        let waited = (0..600).any(|_| {
            thread::sleep(Duration::from_millis(50));
            is_there()
        });
        assert!(waited, "no server listens at {}", peer.url);
        peer
    }

    /// Returns the mock of all vendors' APIs, playing `aimock.json`.
    pub(crate) fn aimock(packages: &Path) -> Self {
        let script = packages.join("node_modules/@copilotkit/aimock/dist/cli.js");
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/aimock.json");
        Self::start(Command::new("node").arg(script).args(["-p", "0", "--strict", "-f", fixtures]))
    }

    /// llama.cpp with a small model.
    pub(crate) fn llama(packages: &Path) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/llama.py");
        Self::start(Command::new(packages.join("python/bin/python")).arg(script))
    }
}

fn boxed(pipe: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    Box::new(pipe)
}

/// `http://host:port` in a line that says so.
fn address(line: &str) -> Option<String> {
    let url = line[line.find("http://")?..].split_whitespace().next()?.trim_end_matches('/');
    let port = url.rsplit(':').next()?;
    port.parse::<u16>().is_ok().then(|| url.to_owned())
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The result does not matter.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
