//! Which release a tree is compared with.

use std::fs;

use super::*;

fn must(root: &Path, args: &[&str]) {
    let named = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
    git(root, &[&named, args].concat()).expect("git").expect("success");
}

#[test]
fn the_latest_release_is_the_nearest_tag_with_a_version() {
    let folder = std::env::temp_dir().join(format!("mainstem-semver-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("folder");
    must(&folder, &["init", "--quiet"]);
    let commit = |message: &str| must(&folder, &["commit", "--quiet", "--allow-empty", "-m", message]);
    commit("first");
    must(&folder, &["tag", "vendored"]);
    assert_eq!(latest_release(&folder).expect("git"), None);
    for version in ["v0.1.0", "v0.2.0"] {
        commit(version);
        must(&folder, &["tag", version]);
    }
    commit("last");
    assert_eq!(latest_release(&folder).expect("git").as_deref(), Some("v0.2.0"));
    fs::remove_dir_all(&folder).expect("removed");
}
