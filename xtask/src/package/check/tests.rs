//! A complete package, and the problems of incomplete ones.

use serde_json::json;

use super::{Package, check, included, join};

const README: &str = "# x\n\n```rust\nlet x = 1;\n```\n";
const LIBRARY: &str = "#![doc = include_str!(\"../README.md\")]\n\nmod a;\n";
const TOOLCHAIN: &str = "[toolchain]\nchannel = \"1.95.0\"\n";

fn package() -> Package {
    let manifest = json!({
        "name": "x", "version": "0.1.0", "manifest_path": "/w/crates/x/Cargo.toml", "publish": null,
        "description": "An x.", "repository": "https://example.org", "rust_version": "1.93",
        "keywords": ["x"], "categories": ["os"], "metadata": { "docs": { "rs": { "all-features": true } } },
    });
    let files = [
        ("Cargo.toml", ""),
        ("README.md", README),
        ("LICENSE-MIT", ""),
        ("LICENSE-APACHE", ""),
        ("src/lib.rs", LIBRARY),
    ];
    Package {
        folder: "crates/x".into(),
        manifest: serde_json::from_value(manifest).unwrap(),
        bytes: 1024,
        files: files.map(|(path, text)| (path.to_owned(), text.to_owned())).into(),
    }
}

fn problems(change: impl FnOnce(&mut Package)) -> Vec<String> {
    let mut package = package();
    change(&mut package);
    check(&package, TOOLCHAIN).iter().map(ToString::to_string).collect()
}

#[test]
fn a_complete_package_has_no_problem() {
    assert_eq!(problems(|_| ()), Vec::<String>::new());
}

#[test]
fn what_is_missing_or_too_much_is_named() {
    let found = problems(|package| {
        package.files.remove("LICENSE-MIT");
        package.files.insert("tests/big.body".into(), String::new());
        package.files.insert("README.md".into(), "# x\n".into());
        package.files.insert("src/lib.rs".into(), "//! An x.\n".into());
        package.manifest.keywords = vec![String::new(); 6];
        package.manifest.rust_version = Some("1.95".into());
        package.bytes = 300 * 1024;
    });
    let words = [
        "no LICENSE-MIT",
        "has tests/big.body",
        "300 KiB",
        "no example",
        "does not begin",
        "keywords",
        "two releases behind",
    ];
    assert_eq!(found.len(), words.len(), "{found:#?}");
    for (problem, word) in found.iter().zip(words) {
        assert!(problem.starts_with("crates/x/Cargo.toml:1: ") && problem.contains(word), "{problem}");
    }
}

#[test]
fn a_file_that_is_included_is_in_the_package() {
    let found = problems(|package| {
        package
            .files
            .insert("src/a.rs".into(), "include_str!(\"../../y/a.md\"); include_bytes!(\"lib.rs\")".into());
    });
    assert_eq!(found, ["crates/x/src/a.rs:1: includes ../../y/a.md, which is not in the package"]);
}

#[test]
fn paths_are_read_and_joined() {
    let text = "include_str!(\"a\")\n#[cfg(doctest)]\ninclude_str!(\"b\")";
    assert_eq!(included(text).collect::<Vec<_>>(), ["a"]);
    assert_eq!(join("src/a/b.rs", "../c.txt"), "src/c.txt");
    assert_eq!(join("src/a.rs", "../../c.txt"), "../../c.txt");
}
