//! `mainstem init`: the first files of a folder with agents.

use std::{
    fs,
    io::{self, ErrorKind, Write},
    path::Path,
};

use anyhow::{Context, ensure};

use crate::{
    args::Init,
    exit::{Exit, Fault, OrExit},
    print::print,
};

const SETTINGS: (&str, &str) = ("mainstem.toml", include_str!("init/mainstem.toml"));
const AGENT: (&str, &str) = ("subagents/researcher.md", include_str!("init/researcher.md"));
const RUST_TEST: (&str, &str) = ("tests/agents.rs", include_str!("init/agents.rs"));
const CHECK: (&str, &str) = ("check.sh", include_str!("init/check.sh"));

/// What a Rust project needs for the test.
const DEPENDENCIES: &str = "\
for the test, Cargo.toml needs [dev-dependencies]: mainstem, mainstem-testing, insta, serde_json, and
tokio with the features macros, rt and test-util
";

const NEXT: &str = "\
`mainstem agents list` shows the agents, `mainstem doctor` what is set up, and
`mainstem run \"Where does this program begin?\"` asks them
";

pub(crate) fn run(args: &Init) -> Result<Exit, Fault> {
    let dir = args.dir.as_path();
    let is_dir = || {
        ensure!(dir.is_dir() || !dir.exists(), "{} is not a directory", dir.display());
        Ok(())
    };
    is_dir().or_exit(Exit::Usage)?;
    let is_rust = dir.join("Cargo.toml").is_file();
    let test = if is_rust { RUST_TEST } else { CHECK };
    let mut text = String::new();
    let mut is_test_new = false;
    for (name, content) in [SETTINGS, AGENT, test] {
        let created = create(&dir.join(name), content).with_context(|| dir.join(name).display().to_string());
        if created.is_err() {
            print(&text)?;
        }
        let is_new = created.or_exit(Exit::Failed)?;
        is_test_new |= is_new && name == test.0;
        text += &format!("{} {name}\n", if is_new { "created" } else { "exists: " });
    }
    if is_rust && is_test_new {
        text += DEPENDENCIES;
    }
    let place = if dir == Path::new(".") { String::new() } else { format!(", in {}", dir.display()) };
    print(&format!("{text}next{place}: {NEXT}"))?;
    Ok(Exit::Reply)
}

/// Creates a file with its folders, whole or not at all; returns `false` if it exists, also as a
/// link.
fn create(path: &Path, content: &str) -> io::Result<bool> {
    let parent = path.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(parent)?;
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = if content.starts_with("#!") { 0o777 } else { 0o666 };
        // The user's mask applies.
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    let mut file = builder.prefix(".mainstem-init-").tempfile_in(parent)?;
    file.write_all(content.as_bytes())?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(true),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(false),
        // The file system has no hard links.
        Err(error) => error.file.persist(path).map(|_| true).map_err(|error| error.error),
    }
}
