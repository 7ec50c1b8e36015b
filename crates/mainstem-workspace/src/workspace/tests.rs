//! Opening, nesting, and writing in turn.

use std::{os::unix::fs::PermissionsExt, os::unix::fs::symlink};

use mainstem_tool::ToolState;
use serde_json::json;

use super::*;
use crate::rig::{Rig, block_on};

#[test]
fn a_workspace_is_a_directory_that_can_be_opened() {
    let rig = Rig::with(&[("a.txt", "")]);
    let error = Workspace::open(rig.at("nope")).unwrap_err().to_string();
    assert!(error.starts_with("can't open the workspace /") && error.contains("nope: "), "{error}");
    assert!(Workspace::open(rig.at("a.txt")).is_err());
    assert!(Workspace::create(rig.at("a.txt/x")).is_err());
    assert_eq!(Workspace::create(rig.at("x/y")).unwrap().root(), rig.at("x/y"));
    symlink(rig.at("x"), rig.at("link")).unwrap();
    let linked = Workspace::open(rig.at("link")).unwrap();
    assert_eq!(linked.root(), rig.at("x"));
    for path in [rig.at("x/y"), rig.at("link/y")] {
        assert_eq!(linked.path(path.to_str().unwrap()).unwrap().relative.to_str(), Some("y"), "{path:?}");
    }
}

#[test]
fn a_workspace_inside_another_can_not_be_led_out() {
    let rig = Rig::new();
    let inner = rig.workspace.create_inside("agents/a").unwrap();
    assert_eq!(inner.root(), rig.at("agents/a"));
    fs::write(rig.at("agents/a/f"), "x").unwrap();
    assert!(inner.open_file(&inner.path("f").unwrap()).is_ok());
    assert!(inner.path("../../x").and_then(|path| inner.open_file(&path)).is_err());
    symlink(rig.outside(), rig.at("agents/b")).unwrap();
    for path in ["agents/b", "agents/b/c", "../outside/c", "/tmp"] {
        assert!(rig.workspace.create_inside(path).is_err(), "{path}");
    }
    assert!(!rig.outside().join("c").exists());
}

#[test]
fn permissions_stay_and_nothing_is_left_behind() {
    let rig = Rig::with(&[("run.sh", "#!/bin/sh\n")]);
    fs::set_permissions(rig.at("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    rig.ok("edit_file", json!({ "path": "run.sh", "old": "/bin/sh", "new": "/bin/bash" }));
    rig.ok("write_file", json!({ "path": "run.sh", "content": "new" }));
    assert_eq!(fs::metadata(rig.at("run.sh")).unwrap().permissions().mode() & 0o777, 0o750);
    rig.err("edit_file", json!({ "path": "run.sh", "old": "nope", "new": "x" }));
    rig.err("edit_file", json!({ "path": "no/such/file", "old": "nope", "new": "x" }));
    assert_eq!(rig.ok("list_files", json!({ "depth": 3 })), "run.sh", "no temporary file, no directory");
}

#[test]
fn edits_of_one_file_at_once_are_all_kept() {
    let rig = Rig::new();
    let marks: Vec<_> = (0..40).map(|number| format!("<{number}>")).collect();
    rig.write("a.txt", marks.join("\n"));
    symlink("a.txt", rig.at("link")).unwrap();
    let again = Workspace::open(rig.workspace.root()).unwrap();
    block_on(async {
        let calls = marks.iter().enumerate().map(|(index, mark)| {
            let rig = &rig;
            let tool = if index % 2 == 0 { rig.tool("edit_file") } else { again.tools().swap_remove(2) };
            let path = if index % 3 == 0 { "link" } else { "a.txt" };
            let arguments = json!({ "path": path, "old": mark, "new": "done" });
            async move { crate::rig::call(&tool, &rig.cx, arguments).await }
        });
        for (state, text) in futures_util::future::join_all(calls).await {
            assert_eq!(state, ToolState::Success, "{text}");
        }
    });
    assert_eq!(rig.read("a.txt"), ["done"; 40].join("\n").into_bytes());
}
