//! What is found, shown and counted.

use std::{
    fs::File,
    io::{Read, Write},
};

use serde_json::{Value, json};

use super::Watched;
use crate::{
    blocking::blocking,
    rig::{Rig, block_on},
};

fn tree() -> Rig {
    let rig = Rig::with(&[
        (".gitignore", "*.log\n"),
        ("src/a.rs", "fn main() {\n    run();\n}\n\nfn run() {}\n"),
        ("src/b.ts", "function Run() {}\r\nlast\r\n"),
        ("x.log", "run\n"),
        (".git/config", "run\n"),
    ]);
    rig.write("image", b"run\0run");
    rig
}

#[test]
fn matching_lines_come_with_path_and_number() {
    let rig = tree();
    #[track_caller]
    fn check(rig: &Rig, arguments: Value, expected: &[&str]) {
        assert_eq!(rig.ok("grep_files", arguments), expected.join("\n"));
    }
    let binary = "[binary files that were not searched to their end: 1]";
    check(
        &rig,
        json!({ "pattern": r"run\(\)" }),
        &["src/a.rs:2:    run();", "src/a.rs:5:fn run() {}", binary],
    );
    check(
        &rig,
        json!({ "pattern": "RUN", "case_insensitive": true, "glob": "*.ts" }),
        &["src/b.ts:1:function Run() {}"],
    );
    check(
        &rig,
        json!({ "pattern": r"\}$", "path": "src" }),
        &["src/a.rs:3:}", "src/a.rs:5:fn run() {}", "src/b.ts:1:function Run() {}"],
    );
    check(&rig, json!({ "pattern": "run", "path": "x.log" }), &["x.log:1:run"]);
    check(&rig, json!({ "pattern": "last", "glob": "src/*.ts" }), &["src/b.ts:2:last"]);
    check(&rig, json!({ "pattern": "last", "glob": "*.ts", "path": "src" }), &["src/b.ts:2:last"]);
    check(&rig, json!({ "pattern": "nothing", "path": "src" }), &["[no match]"]);
    check(
        &rig,
        json!({ "pattern": r"\brun", "path": "src/a.rs", "context": 1 }),
        &[
            "src/a.rs-1-fn main() {",
            "src/a.rs:2:    run();",
            "src/a.rs-3-}",
            "src/a.rs-4-",
            "src/a.rs:5:fn run() {}",
        ],
    );
    check(
        &rig,
        json!({ "pattern": "run", "path": "src", "context": 1, "max": 1 }),
        &[
            "src/a.rs-1-fn main() {",
            "src/a.rs:2:    run();",
            "src/a.rs-3-}",
            "[and 1 more matches; give a narrower pattern, a glob or a path]",
        ],
    );
}

#[test]
fn a_bad_pattern_is_an_error_with_its_place() {
    let error = tree().err("grep_files", json!({ "pattern": "fn (run" }));
    assert!(error.starts_with("pattern is no regular expression: "), "{error}");
    assert!(error.contains("fn (run\n       ^") && error.contains("unclosed group"), "{error}");
    let error = tree().err("grep_files", json!({ "pattern": "a", "glob": "{a" }));
    assert!(error.starts_with("glob is no glob: "), "{error}");
    let error = tree().err("grep_files", json!({ "pattern": "a\\nb" }));
    assert!(error.contains("\\n"), "{error}");
}

#[test]
fn a_pattern_that_takes_much_memory_is_refused() {
    let rig = Rig::with(&[("a.txt", "word\n")]);
    let begun = std::time::Instant::now();
    for pattern in [r"\p{L}{1500}x", r"(\w{50}){50}", r"((a{100}){100}){100}"] {
        let error = rig.err("grep_files", json!({ "pattern": pattern }));
        assert!(error.starts_with("pattern is too large: compiled it takes more than 4 MiB"), "{error}");
    }
    let error = rig.err("grep_files", json!({ "pattern": "a".repeat(20_000) }));
    assert!(error.starts_with("pattern has 20000 bytes"), "{error}");
    assert!(rig.ok("grep_files", json!({ "pattern": r"\w{1,60}" })).contains("a.txt:1:word"));
    // The former limit of 100 MiB takes seconds for each.
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn long_lines_are_cut_around_the_match() {
    let rig = Rig::with(&[("min.js", &format!("{}needle{}", "x".repeat(5000), "y".repeat(5000)))]);
    let found = rig.ok("grep_files", json!({ "pattern": "needle" }));
    assert!(found.starts_with("min.js:1:…xxx") && found.contains("xneedley"), "{found}");
    assert!(found.ends_with("… [line of 10006 bytes, cut]") && found.len() < 600, "{found}");
}

#[test]
fn a_large_file_is_searched_in_parts() {
    let rig = Rig::new();
    let mut file = File::create(rig.at("large.txt")).unwrap();
    let block = format!("{}\n", "x".repeat(99)).repeat(10_000);
    (0..52).for_each(|_| file.write_all(block.as_bytes()).unwrap());
    file.write_all(b"needle\n").unwrap();
    assert_eq!(rig.ok("grep_files", json!({ "pattern": "needle" })), "large.txt:520001:needle");
    let all = rig.ok("grep_files", json!({ "pattern": "x", "max": 2000 }));
    assert!(all.len() < 64 << 10);
    let more = "\n[and 519568 more matches; give a narrower pattern, a glob or a path]";
    assert!(all.ends_with(more), "{}", &all[all.len() - 100..]);
}

#[test]
fn a_line_that_does_not_fit_in_memory_is_said() {
    let rig = Rig::with(&[("b.txt", "needle\n")]);
    let mut file = File::create(rig.at("a.txt")).unwrap();
    (0..20).for_each(|_| file.write_all(&vec![b'x'; 1 << 20]).unwrap());
    let found = rig.ok("grep_files", json!({ "pattern": "needle" }));
    assert!(found.starts_with("b.txt:1:needle\n[\"a.txt\" was not searched to its end: "), "{found}");
}

#[test]
fn a_file_that_nobody_wants_is_not_read_on() {
    let rig = Rig::with(&[("a.txt", "abc")]);
    let (path, token) = (rig.at("a.txt"), rig.cx.cancellation().clone());
    let read = block_on(blocking(&rig.cx, move |stop| {
        let mut file = Watched { file: File::open(path).unwrap(), stop };
        let mut byte = [0];
        let first = file.read(&mut byte).is_ok();
        token.cancel();
        Ok([first, file.read(&mut byte).is_ok()])
    }));
    assert_eq!(read.unwrap(), [true, false]);
}
