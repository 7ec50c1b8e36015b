//! What counts as a file of the workspace.

use std::fs;

use super::files;

#[test]
fn builds_and_history_are_no_files_of_ours() {
    let tree = tempfile::tempdir().unwrap();
    for path in ["target/debug/build.rs", ".git/HEAD", "crates/b/src/lib.rs", "crates/a.rs", ".ci/run"] {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    assert_eq!(files(tree.path()).unwrap(), [".ci/run", "crates/a.rs", "crates/b/src/lib.rs"]);
}
