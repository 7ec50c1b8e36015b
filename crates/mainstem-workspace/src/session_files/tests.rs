//! The files of a session at one process after another, over each kind of store.

use std::{collections::BTreeMap, fmt, fs, sync::Arc};

use futures_util::stream::BoxStream;
use mainstem_testing::{child_context, context};
use mainstem_tool::{Artifacts, Tool, ToolContext, ToolState, async_trait};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    local::LocalFileSystem, memory::InMemory, path::Path,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    Workspaces,
    rig::{Rig, block_on, call, shell_options},
};

/// A machine, with a directory of its own.
struct Node {
    rig: Rig,
    store: Arc<dyn ObjectStore>,
    workspaces: Workspaces,
}

impl Node {
    fn new(store: &Arc<dyn ObjectStore>) -> Self {
        Self::of(store, SessionFiles::new(store.clone()))
    }

    fn of(store: &Arc<dyn ObjectStore>, files: SessionFiles) -> Self {
        let rig = Rig::new();
        let workspaces = workspaces(&rig, files);
        Self { rig, store: store.clone(), workspaces }
    }

    /// The process ends, and another one begins with its directory.
    fn restart(&mut self) {
        self.workspaces = workspaces(&self.rig, SessionFiles::new(self.store.clone()));
    }

    fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let shell = (name == "shell").then(|| self.workspaces.shell_with(shell_options()));
        let mut tools = self.workspaces.tools().into_iter();
        shell.unwrap_or_else(|| tools.find(|tool| tool.spec().name == name).unwrap())
    }

    #[track_caller]
    fn call(&self, cx: &ToolContext, tool: &str, arguments: Value) -> (ToolState, String) {
        block_on(call(&self.tool(tool), cx, arguments))
    }

    #[track_caller]
    fn ok(&self, cx: &ToolContext, tool: &str, arguments: Value) -> String {
        let (state, text) = self.call(cx, tool, arguments);
        assert_eq!(state, ToolState::Success, "{text}");
        text
    }

    #[track_caller]
    fn err(&self, cx: &ToolContext, tool: &str, arguments: Value) -> String {
        let (state, text) = self.call(cx, tool, arguments);
        assert_eq!(state, ToolState::Error, "{text}");
        text
    }

    fn write(&self, cx: &ToolContext, path: &str, content: &str) {
        self.ok(cx, "write_file", json!({ "path": path, "content": content }));
    }

    fn list(&self, cx: &ToolContext) -> String {
        self.ok(cx, "glob_files", json!({ "pattern": "**/*" }))
    }
}

fn workspaces(rig: &Rig, files: SessionFiles) -> Workspaces {
    Workspaces::of_sessions(rig.workspace.clone(), files, |session, cx| match cx.source() {
        None => Ok(session.clone()),
        Some(source) => session.create_inside(format!("kids/{}", source.session_id)),
    })
}

fn memory() -> Arc<dyn ObjectStore> {
    Arc::new(InMemory::new())
}

/// Checks what each store must do: S3's is in `tests/files`.
fn check(store: &Arc<dyn ObjectStore>) {
    let (mut one, two) = (Node::new(store), Node::new(store));
    let root = context("s-1").build();
    let kid = child_context(&root, "kid", "sub-1");
    one.write(&root, "plan.md", "1. look\n");
    one.write(&kid, "notes/found.txt", "a bug");
    one.ok(
        &root,
        "shell",
        json!({ "command": "printf 'echo ran' > run.sh; chmod +x run.sh; ln -s plan.md link" }),
    );
    let artifact = block_on(one.workspaces.store(&kid, "a long result")).unwrap();

    assert_eq!(two.ok(&root, "read_file", json!({ "path": "plan.md" })), "1\t1. look");
    assert_eq!(two.ok(&kid, "read_file", json!({ "path": "notes/found.txt" })), "1\ta bug");
    assert_eq!(two.ok(&kid, "read_file", json!({ "path": artifact })), "1\ta long result");
    assert!(two.ok(&root, "shell", json!({ "command": "./run.sh; test ! -e link" })).starts_with("ran"));
    two.ok(&root, "edit_file", json!({ "path": "plan.md", "old": "look", "new": "mend" }));
    two.ok(&root, "shell", json!({ "command": "rm run.sh" }));

    one.restart();
    assert_eq!(one.list(&root), "kids/sub-1/artifacts/sub-1/call-1.txt\nkids/sub-1/notes/found.txt\nplan.md");
    assert_eq!(one.ok(&root, "read_file", json!({ "path": "plan.md" })), "1\t1. mend");
    let beside = fs::read_dir(one.rig.at("sessions")).unwrap().count();
    assert_eq!(beside, 1, "what was replaced is removed");
}

#[test]
fn a_session_finds_its_files_at_another_node() {
    check(&memory());
    let shared = tempfile::tempdir().unwrap();
    check(&(Arc::new(LocalFileSystem::new_with_prefix(shared.path()).unwrap()) as Arc<dyn ObjectStore>));
}

#[test]
fn a_process_that_has_lost_its_session_replaces_nothing() {
    let store = memory();
    let (one, two) = (Node::new(&store), Node::new(&store));
    let cx = context("s-1").build();
    one.write(&cx, "plan.md", "of one");
    two.write(&cx, "plan.md", "first of two");
    // More than are kept: the number that the other one would use is free again.
    (0..5).for_each(|at| two.write(&cx, "plan.md", &format!("{at}")));
    two.write(&cx, "plan.md", "of two");
    let late = one.err(&cx, "write_file", json!({ "path": "late.md", "content": "late" }));
    assert!(late.starts_with("another process continues this session"), "{late}");
    // It learns of it, and has what the other one has.
    assert_eq!(one.list(&cx), "plan.md");
    assert_eq!(one.ok(&cx, "read_file", json!({ "path": "plan.md" })), "1\tof two");
}

#[test]
fn tenants_and_sessions_are_apart_and_a_deleted_one_leaves_nothing() {
    let store = memory();
    let files = SessionFiles::new(store.clone());
    let (own, acme) = (Node::of(&store, files.clone()), Node::of(&store, files.of_tenant("acme")));
    let (one, other) = (context("s-1").build(), context("s-2").build());
    own.write(&one, "of.txt", "own");
    acme.write(&one, "of.txt", "acme");
    assert_eq!(own.ok(&one, "read_file", json!({ "path": "of.txt" })), "1\town");
    assert!(own.err(&other, "read_file", json!({ "path": "of.txt" })).contains("does not exist"));
    let elsewhere = Node::new(&store);
    assert_eq!(elsewhere.list(&one), "of.txt");

    block_on(files.delete(&own.rig.workspace, one.session_id())).unwrap();
    assert!(!own.rig.at("sessions/s-1").exists());
    let mut elsewhere = elsewhere;
    elsewhere.restart();
    for node in [&own, &elsewhere] {
        assert_eq!(node.ok(&one, "list_files", json!({})), "[the directory is empty]");
    }
    assert_eq!(acme.ok(&one, "read_file", json!({ "path": "of.txt" })), "1\tacme");
    let left = block_on(store.list_with_delimiter(Some(&Path::from("sessions/s-1")))).unwrap();
    assert!(left.objects.is_empty() && left.common_prefixes.is_empty(), "{left:?}");
}

/// What is made in the directory, and what is said of it.
type Row = (&'static str, fn(&Rig), &'static str);

#[test]
fn a_file_that_becomes_a_link_or_a_pipe_is_not_read() {
    let (store, rig) = (memory(), Rig::new());
    let (files, cx) = (SessionFiles::new(store.clone()), context("s-1").build());
    let of_other = child_context(&context("s-2").build(), "kid", "sub-2");
    let tools = workspaces(&rig, files).tools();
    for (cx, path) in [(&cx, "a/b"), (&of_other, "secret")] {
        block_on(call(&tools[1], cx, json!({ "path": path, "content": "secret" })));
    }
    let folder = Folder::new(&rig.workspace, cx.session_id());
    assert_eq!(folder.read("a/b").unwrap().unwrap(), "secret");
    fs::remove_dir_all(rig.at("sessions/s-1/a")).unwrap();
    std::os::unix::fs::symlink("../s-2/kids/sub-2", rig.at("sessions/s-1/a")).unwrap();
    assert!(folder.read("a/secret").is_err(), "a link leads to another session");
    let made = std::process::Command::new("mkfifo").arg(rig.at("sessions/s-1/pipe")).status().unwrap();
    assert!(made.success() && folder.read("pipe").unwrap().is_none());
}

#[test]
fn a_file_with_the_size_and_time_of_another_is_stored() {
    let store = memory();
    let (node, cx) = (Node::new(&store), context("s-1").build());
    node.ok(&cx, "shell", json!({ "command": "printf 1 > v; touch -d 1985-10-26 v" }));
    std::thread::sleep(Duration::from_millis(2500));
    node.ok(&cx, "shell", json!({ "command": "true" }));
    node.ok(&cx, "shell", json!({ "command": "printf 2 > v.new; touch -d 1985-10-26 v.new; mv v.new v" }));
    assert_eq!(Node::new(&store).ok(&cx, "read_file", json!({ "path": "v" })), "1\t2");
}

#[test]
fn what_cannot_be_stored_is_named() {
    let (store, cx) = (memory(), context("s-1").build());
    let rows: [Row; 4] = [
        (
            "too large",
            |rig| rig.large("sessions/s-1/big.bin", (64 << 20) + 1),
            "\"big.bin\" has more than 64 MiB",
        ),
        (
            "too much",
            |rig| (0..17).for_each(|at| rig.large(&format!("sessions/s-1/{at}.bin"), 64 << 20)),
            "more than can be stored",
        ),
        ("odd", Rig::odd_name, "is not UTF-8"),
        (
            "deep",
            |rig| fs::create_dir_all(rig.at(&format!("sessions/s-1{}", "/d".repeat(300)))).unwrap(),
            "at most 256 deep",
        ),
    ];
    for (what, make, why) in rows {
        let node = Node::new(&store);
        node.ok(&cx, "list_files", json!({}));
        make(&node.rig);
        let said = node.err(&cx, "write_file", json!({ "path": "a", "content": "a" }));
        assert!(said.contains(why), "{what}: {said}");
    }
    assert_eq!(Node::new(&store).ok(&cx, "list_files", json!({})), "[the directory is empty]");
}

#[test]
fn a_damaged_store_is_not_used() {
    let cx = context("s-1").build();
    let hash = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
    let manifest = |path: &str| {
        json!({ "writer": "another", "files": { path: { "hash": hash, "size": 3 } } }).to_string()
    };
    let rows = [
        ("{", "foo", "damaged"),
        (&manifest("../up"), "foo", "damaged"),
        (&manifest("/etc/passwd"), "foo", "damaged"),
        (&manifest("a/./b"), "foo", "damaged"),
        (&manifest("a"), "bar", "damaged"),
    ];
    for (manifest, content, why) in rows {
        let store = memory();
        let put = |at: &str, text: &str| {
            block_on(store.put(&Path::from(at), PutPayload::from(text.to_owned()))).unwrap();
        };
        put("sessions/s-1/manifests/00000000000000000001", manifest);
        put(&format!("sessions/s-1/files/{hash}"), content);
        let node = Node::new(&store);
        let said = node.err(&cx, "read_file", json!({ "path": "a" }));
        assert!(said.contains(why) && !said.contains("manifests"), "{manifest}: {said}");
        assert!(!node.rig.at("sessions/up").exists());
    }
}

#[test]
fn a_store_that_does_not_work_fails_the_call_and_the_next_call_stores() {
    let shared = tempfile::tempdir().unwrap();
    let at = shared.path().join("store");
    fs::create_dir(&at).unwrap();
    let store: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new_with_prefix(&at).unwrap());
    let (node, cx) = (Node::new(&store), context("s-1").build());
    node.write(&cx, "a", "1");
    fs::rename(&at, shared.path().join("away")).unwrap();
    fs::write(&at, "").unwrap();
    let said = node.err(&cx, "write_file", json!({ "path": "b", "content": "2" }));
    assert!(said.contains("does not work at present") && !said.contains("store/"), "{said}");
    let said = node.err(&cx, "shell", json!({ "command": "echo said; echo 3 > c" }));
    assert!(said.contains("said") && said.contains("does not work at present"), "{said}");
    fs::remove_file(&at).unwrap();
    fs::rename(shared.path().join("away"), &at).unwrap();
    node.write(&cx, "d", "4");
    assert_eq!(Node::new(&store).list(&cx), "a\nb\nc\nd");
}

#[test]
fn old_manifests_are_deleted() {
    let store = memory();
    let (node, cx) = (Node::new(&store), context("s-1").build());
    (0..70).for_each(|at| node.write(&cx, "a", &at.to_string()));
    let of = |part: &str| block_on(store.list_with_delimiter(Some(&Path::from(part)))).unwrap().objects.len();
    assert_eq!(of("sessions/s-1/manifests"), 3);
    // Files are deleted after an hour.
    assert_eq!(of("sessions/s-1/files"), 70);
}

/// A store whose answer to the creation of a manifest is lost.
#[derive(Debug)]
struct Mute(InMemory);

impl fmt::Display for Mute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mute")
    }
}

#[async_trait]
impl ObjectStore for Mute {
    async fn put_opts(&self, at: &Path, payload: PutPayload, how: PutOptions) -> Result<PutResult> {
        let is_creation = matches!(how.mode, PutMode::Create);
        let put = self.0.put_opts(at, payload, how).await?;
        match is_creation {
            true => Err(Error::Generic { store: "mute", source: "no answer".into() }),
            false => Ok(put),
        }
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        how: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(at, how).await
    }

    async fn get_opts(&self, at: &Path, how: GetOptions) -> Result<GetResult> {
        self.0.get_opts(at, how).await
    }

    fn delete_stream(&self, all: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(all)
    }

    fn list(&self, below: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(below)
    }

    async fn list_with_delimiter(&self, below: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(below).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, how: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, how).await
    }
}

#[test]
fn an_answer_that_is_lost_makes_no_stranger_of_this_process() {
    let store: Arc<dyn ObjectStore> = Arc::new(Mute(InMemory::new()));
    let (node, run) = (Node::new(&store), |id: &str| context("s-1").with_run(id).build());
    for (at, id) in ["run-1", "run-1", "run-2", "run-3"].iter().enumerate() {
        let said = node.err(&run(id), "write_file", json!({ "path": format!("{at}"), "content": "x" }));
        assert!(said.contains("does not work at present"), "{said}");
    }
    assert_eq!(Node::new(&store).list(&run("run-4")), "0\n1\n2\n3");
}

#[test]
fn a_session_of_the_same_id_and_number_is_another_one() {
    let store = memory();
    let (one, two) = (Node::new(&store), Node::new(&store));
    let run = |id: &str| context("s-1").with_run(id).build();
    one.write(&run("run-1"), "old", "of the deleted session");
    let files = SessionFiles::new(store.clone());
    block_on(files.delete(&two.rig.workspace, run("run-1").session_id())).unwrap();
    two.write(&run("run-2"), "new", "of the next one");
    assert_eq!(one.list(&run("run-3")), "new");
}

#[test]
fn what_many_agents_write_at_once_is_stored() {
    let store = memory();
    let (node, root) = (Node::new(&store), context("s-1").build());
    let kids: Vec<_> = (0..20).map(|at| child_context(&root, "kid", &format!("sub-{at}"))).collect();
    let write = node.tool("write_file");
    for round in 1..=5 {
        let writes = kids
            .iter()
            .map(|kid| call(&write, kid, json!({ "path": "said", "content": format!("{round}") })));
        for (state, said) in block_on(futures_util::future::join_all(writes)) {
            assert_eq!(state, ToolState::Success, "{said}");
        }
    }
    let other = Node::new(&store);
    for kid in &kids {
        assert_eq!(other.ok(kid, "read_file", json!({ "path": "said" })), "1\t5");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever two nodes do one after the other, each finds what the other one has left.
    #[test]
    fn each_node_has_what_the_last_one_left(
        steps in prop::collection::vec((0..2usize, 0..4u8, prop::option::of("[ab]{0,3}")), 1..12)
    ) {
        let (store, cx) = (memory(), context("s-1").build());
        let mut nodes = [Node::new(&store), Node::new(&store)];
        let mut files = BTreeMap::new();
        for (at, name, content) in steps {
            nodes[at].restart();
            let path = format!("dir/{name}");
            match &content {
                Some(content) => nodes[at].write(&cx, &path, content),
                None => {
                    nodes[at].ok(&cx, "shell", json!({ "command": format!("rm -f {path}") }));
                }
            }
            match content {
                Some(content) => _ = files.insert(path, content),
                None => _ = files.remove(&path),
            }
            let found: BTreeMap<_, _> = files
                .keys()
                .map(|path| (path.clone(), String::from_utf8(nodes[at].rig.read(&format!("sessions/s-1/{path}"))).unwrap()))
                .collect();
            prop_assert_eq!(&found, &files);
            let there = fs::read_dir(nodes[at].rig.at("sessions/s-1/dir")).map_or(0, Iterator::count);
            prop_assert_eq!(there, files.len());
        }
    }
}

impl Rig {
    /// Makes a file of this size, without its bytes.
    fn large(&self, path: &str, size: u64) {
        self.write(path, "");
        fs::File::options().write(true).open(self.at(path)).unwrap().set_len(size).unwrap();
    }

    fn odd_name(&self) {
        use std::os::unix::ffi::OsStrExt as _;
        let name = std::ffi::OsStr::from_bytes(b"sessions/s-1/\xff");
        fs::create_dir_all(self.at("sessions/s-1")).unwrap();
        fs::write(self.workspace.root().join(name), "").unwrap();
    }
}
