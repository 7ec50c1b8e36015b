//! One set of tools, many agents, each in its own directory.

use std::sync::Arc;

use mainstem_testing::{child_context, context};
use serde_json::json;

use super::*;
use crate::rig::{Rig, block_on, call};

#[test]
fn each_instance_has_a_directory_of_its_own() {
    let rig = Rig::new();
    let tools = Workspaces::isolated(rig.workspace.clone()).tools();
    let root = context("s-1").with_user("Ann").build();
    let kids = [child_context(&root, "kid", "sub-1"), child_context(&root, "kid", "sub-2")];
    let below = child_context(&kids[0], "kid", "sub-3");
    for (cx, said) in [(&root, "root"), (&kids[0], "one"), (&kids[1], "two"), (&below, "below")] {
        let written = block_on(call(&tools[1], cx, json!({ "path": "said.txt", "content": said }))).1;
        assert_eq!(written, format!("created \"said.txt\" ({} bytes)", said.len()));
    }
    let read = |path: &str| String::from_utf8(rig.read(path)).unwrap();
    assert_eq!(read("said.txt"), "root");
    assert_eq!(read("agents/kid/%41nn/s-1/sub-1/said.txt"), "one");
    assert_eq!(read("agents/kid/%41nn/s-1/sub-2/said.txt"), "two");
    assert_eq!(read("agents/kid/%41nn/sub-1/sub-3/said.txt"), "below");
    let out = block_on(call(&tools[0], &kids[0], json!({ "path": "../sub-2/said.txt" }))).1;
    assert!(out.contains("leads out"), "{out}");
}

#[test]
fn ids_can_not_lead_out() {
    let rig = Rig::new();
    let tools = Workspaces::isolated(rig.workspace.clone()).tools();
    let root = context("../../outside").with_user("..").build();
    let kid = child_context(&root, "../../../outside", "/tmp");
    block_on(call(&tools[1], &kid, json!({ "path": "f", "content": "" })));
    let found = rig.ok("glob_files", json!({ "pattern": "**/f" }));
    // The agent's id and the user are any text; the ids of sessions have no slash.
    assert_eq!(found, "agents/%2e%2e%2f%2e%2e%2f%2e%2e%2foutside/%2e%2e/_%2e_%2e%2e_outside/_tmp/f");
}

#[test]
fn a_resolver_may_refuse_and_sees_the_run() {
    let rig = Rig::new();
    let workspace = rig.workspace;
    let workspaces = Workspaces::new(move |cx| {
        cx.get::<&str>()
            .map(|_| workspace.clone())
            .ok_or_else(|| WorkspaceError::Refused("no files here".into()))
    });
    let tools = workspaces.tools();
    let list = |cx: &ToolContext| block_on(call(&tools[3], cx, json!({}))).1;
    assert_eq!(list(&context("s").build()), "no files here");
    assert_eq!(list(&context("s").with_value(Arc::new("x")).build()), "[the directory is empty]");
}

#[test]
fn a_workspace_that_cannot_be_opened_is_not_named() {
    let tools = Workspaces::new(|_| Workspace::open("/no/such/place-of-the-operator")).tools();
    let said = block_on(call(&tools[3], &context("s").build(), json!({}))).1;
    assert!(said.starts_with("the workspace can't be opened: ") && !said.contains("operator"), "{said}");
}
