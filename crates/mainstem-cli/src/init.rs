//! `mainstem init`: the first files of a folder with agents.

use std::{
    fs::{self, File},
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
next: `mainstem agents list` shows the agents, `mainstem doctor` what is set up, and
`mainstem run \"Where does this program begin?\"` asks them
";

pub(crate) fn run(args: &Init) -> Result<Exit, Fault> {
    let dir = args.dir.as_path();
    let is_dir = || {
        ensure!(dir.is_dir(), "{} is not a directory", dir.display());
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
    print(&(text + NEXT))?;
    Ok(Exit::Reply)
}

/// Creates a file with its folders; returns `false` if it exists, also as a link.
fn create(path: &Path, content: &str) -> io::Result<bool> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = match File::create_new(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
        file => file?,
    };
    file.write_all(content.as_bytes())?;
    #[cfg(unix)]
    if content.starts_with("#!") {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(fs::Permissions::from_mode(0o755))?;
    }
    Ok(true)
}
