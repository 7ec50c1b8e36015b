//! For tests: a workspace in a directory with a file beside it, and calls of its tools.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use mainstem_testing::{context, log_of};
use mainstem_tool::{Tool, ToolContext, ToolOutput, ToolState};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Workspace;

/// The content of the file outside.
pub(crate) const SECRET: &str = "outside-secret";

pub(crate) struct Rig {
    dir: TempDir,
    pub(crate) workspace: Workspace,
    pub(crate) cx: ToolContext,
}

impl Rig {
    /// Creates an empty `ws`, and `outside/secret.txt` beside it.
    pub(crate) fn new() -> Self {
        let dir = TempDir::with_prefix("mainstem-ws-").unwrap();
        fs::create_dir(dir.path().join("outside")).unwrap();
        fs::write(dir.path().join("outside/secret.txt"), SECRET).unwrap();
        let workspace = Workspace::create(dir.path().join("ws")).unwrap();
        Self { dir, workspace, cx: context("s-1").build() }
    }

    /// Creates a workspace with these files.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let rig = Self::new();
        files.iter().for_each(|(path, content)| rig.write(path, content));
        rig
    }

    /// Returns a path in the workspace.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.workspace.root().join(path)
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("outside")
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.at(path)).unwrap()
    }

    /// Returns the result of a call, as the model reads it.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> (ToolState, String) {
        call(&self.tool(tool), &self.cx, arguments).await
    }

    /// Returns the result of a call that succeeds.
    #[track_caller]
    pub(crate) fn ok(&self, tool: &str, arguments: Value) -> String {
        let (state, text) = block_on(self.call(tool, arguments));
        assert_eq!(state, ToolState::Success, "{text}");
        text
    }

    /// Returns the result of a call that fails.
    #[track_caller]
    pub(crate) fn err(&self, tool: &str, arguments: Value) -> String {
        let (state, text) = block_on(self.call(tool, arguments));
        assert_eq!(state, ToolState::Error, "{text}");
        text
    }

    pub(crate) fn tool(&self, name: &str) -> Arc<dyn Tool> {
        if name == "shell" {
            return shell(&self.workspace, shell_options());
        }
        self.workspace.tools().into_iter().find(|tool| tool.spec().name == name).unwrap()
    }
}

pub(crate) async fn call(tool: &Arc<dyn Tool>, cx: &ToolContext, arguments: Value) -> (ToolState, String) {
    let before = log_of(cx).last_seq();
    match tool.call(cx, arguments).await {
        Ok(output) => {
            let (state, text) = parts(output);
            (state, progress(cx, before) + &text)
        }
        Err(error) => (ToolState::Error, error.to_string()),
    }
}

fn parts(output: ToolOutput) -> (ToolState, String) {
    let (content, state) = output.into_parts();
    (state, content.iter().map(|block| block.as_text().unwrap()).collect())
}

/// Returns the tool over a workspace.
#[cfg(unix)]
pub(crate) fn shell(workspace: &Workspace, options: crate::ShellOptions) -> Arc<dyn Tool> {
    crate::Workspaces::from(workspace.clone()).shell_with(options)
}

/// Returns options with this test binary as the guard, by the test below.
#[cfg(unix)]
pub(crate) fn shell_options() -> crate::ShellOptions {
    let itself = mainstem_guard::Program::new(std::env::current_exe().unwrap());
    let itself = itself.with_arg("--exact").with_arg("rig::guards").with_arg("--nocapture");
    crate::ShellOptions::default().with_guard(itself.with_arg("--test-threads=1"))
}

/// Prints why a test can't run on this machine; in CI, fails.
#[track_caller]
pub(crate) fn not_applicable(why: &str) -> bool {
    assert!(std::env::var_os("CI").is_none(), "in CI it must be tested: {why}");
    eprintln!("not applicable: {why}");
    false
}

/// A process that was started as a guard runs the guard here.
#[cfg(unix)]
#[test]
fn guards() {
    mainstem_guard::take_role();
}

/// Returns the progress after an event.
pub(crate) fn progress(cx: &ToolContext, after: u64) -> String {
    let mut cursor = log_of(cx).subscribe_from(after + 1);
    std::iter::from_fn(|| cursor.try_next())
        .map(|event| json!(event)["delta"].as_str().unwrap().to_owned())
        .collect()
}

/// Runs a future in a runtime as tools have it. Panics after more time than any test needs.
#[track_caller]
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = runtime();
    let done = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), work).await });
    // Does not wait for a thread that hangs.
    runtime.shutdown_background();
    done.expect("it hangs")
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
