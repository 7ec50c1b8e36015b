//! Running the binary, in a directory of its own and with nothing of the machine's environment.

use std::{
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use mainstem_event::AgentEvent;

/// Longer than anything here takes, on a busy machine too.
const LIMIT: Duration = Duration::from_secs(30);

/// A run to be.
pub(crate) struct Cli {
    pub(crate) dir: tempfile::TempDir,
    command: Command,
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// `mainstem` with these arguments, separated by spaces.
pub(crate) fn mainstem(arguments: &str) -> Cli {
    let arguments: Vec<_> = arguments.split_whitespace().collect();
    program(env!("CARGO_BIN_EXE_mainstem"), &arguments)
}

/// A program with these arguments.
pub(crate) fn program(name: &str, arguments: &[&str]) -> Cli {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(name);
    command.env_clear().env("LANG", "C.UTF-8").env("TERM", "xterm").env("HOME", dir.path());
    command.current_dir(dir.path()).stdin(Stdio::null()).args(arguments);
    Cli { dir, command }
}

/// `mainstem run` of the demo without pauses.
pub(crate) fn demo(arguments: &str) -> Cli {
    mainstem(&format!("run -m demo --demo-pace 0 {arguments}"))
}

/// The example's workspace.
pub(crate) fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/review")
}

impl Cli {
    /// One more argument, with whatever is in it.
    pub(crate) fn arg(mut self, argument: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// More arguments, with whatever is in them.
    pub(crate) fn args(mut self, arguments: &[&str]) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// A file in the directory it runs in.
    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// Runs it in this directory instead of its own.
    pub(crate) fn within(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    pub(crate) fn stdin(mut self, stdin: impl Into<Stdio>) -> Self {
        self.command.stdin(stdin);
        self
    }

    pub(crate) fn streams(mut self, stdout: impl Into<Stdio>, stderr: impl Into<Stdio>) -> Self {
        self.command.stdout(stdout).stderr(stderr);
        self
    }

    /// Runs it to its end.
    pub(crate) fn run(self) -> Done {
        self.start().done()
    }

    /// Starts it, with stdout and stderr to be read.
    pub(crate) fn start(self) -> Running {
        let mut running = self.streams(Stdio::piped(), Stdio::piped()).spawn();
        let (stdout, stderr) = (running.child.stdout.take().unwrap(), running.child.stderr.take().unwrap());
        running.stdout = Some(BufReader::new(stdout));
        running.stderr = Some(std::thread::spawn(move || text(stderr)));
        running
    }

    /// Starts it with its streams as they were set.
    pub(crate) fn spawn(mut self) -> Running {
        let child = self.command.spawn().unwrap();
        Running { child, stdout: None, stderr: None, _dir: self.dir }
    }
}

/// A run under way. Killed when dropped.
pub(crate) struct Running {
    pub(crate) child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    stderr: Option<std::thread::JoinHandle<String>>,
    _dir: tempfile::TempDir,
}

impl Running {
    /// The next line of stdout.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        line
    }

    /// The next line of stdout as an event.
    pub(crate) fn event(&mut self) -> AgentEvent {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Closes the reader of stdout.
    pub(crate) fn close_stdout(&mut self) {
        self.stdout = None;
    }

    /// Returns the id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Waits for the end, without reading.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let started = Instant::now();
        while started.elapsed() < LIMIT {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("it does not end");
    }

    /// Reads to the end.
    pub(crate) fn done(mut self) -> Done {
        let stdout = self.stdout.take().map(text).unwrap_or_default();
        let stderr = self.stderr.take().map(|stderr| stderr.join().unwrap()).unwrap_or_default();
        Done { code: self.wait().code(), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(mut stream: impl Read) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Lines of JSON as events.
pub(crate) fn events(text: &str) -> Vec<AgentEvent> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}
