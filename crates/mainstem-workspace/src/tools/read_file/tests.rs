//! Lines, bounds, and binary files.

use std::{fs::File, io::Write};

use serde_json::json;

use crate::rig::Rig;

#[test]
fn lines_come_with_numbers_and_a_pointer_to_the_rest() {
    let rig =
        Rig::with(&[("a", "one\ntwo\nthree\n"), ("empty", ""), ("crlf", "a\r\nb\r\n"), ("bad", "a\u{e9}\n")]);
    rig.write("latin", b"caf\xE9\n");
    #[track_caller]
    fn check(rig: &Rig, path: &str, offset: u64, limit: u64, expected: &str) {
        assert_eq!(rig.ok("read_file", json!({ "path": path, "offset": offset, "limit": limit })), expected);
    }
    assert_eq!(rig.ok("read_file", json!({ "path": "a" })), "1\tone\n2\ttwo\n3\tthree");
    check(&rig, "a", 1, 2, "1\tone\n2\ttwo\n[lines 1-2 of 3; read on with offset=3]");
    check(&rig, "a", 3, 2, "3\tthree\n[lines 3-3 of 3]");
    check(&rig, "empty", 1, 1, "[the file is empty]");
    check(&rig, "crlf", 1, 9, "1\ta\n2\tb\n[lines end in CRLF]");
    check(
        &rig,
        "latin",
        1,
        9,
        "1\tcaf\u{fffd}\n[lines that are not UTF-8: 1; U+FFFD stands for what is not]",
    );
    let error = rig.err("read_file", json!({ "path": "a", "offset": 4 }));
    assert_eq!(error, "\"a\" has 3 lines, so that there is no line 4");
}

#[test]
fn a_binary_file_is_said_not_dumped() {
    let rig = Rig::new();
    rig.write("a.png", b"\x89PNG\r\n\x1a\n\0\0\0");
    let error = rig.err("read_file", json!({ "path": "a.png" }));
    assert_eq!(error, "\"a.png\" is a binary file of 11 bytes; read_file reads text only");
    File::create(rig.at("sparse")).unwrap().set_len(50 << 20).unwrap();
    assert!(rig.err("read_file", json!({ "path": "sparse" })).contains("binary file of 52428800 bytes"));
}

#[test]
fn a_large_file_is_read_in_parts() {
    let rig = Rig::new();
    let mut file = File::create(rig.at("large")).unwrap();
    let block = format!("{}\n", "x".repeat(99)).repeat(10_000);
    (0..52).for_each(|_| file.write_all(block.as_bytes()).unwrap());
    let answer = rig.ok("read_file", json!({ "path": "large" }));
    assert!(answer.len() < 64 << 10, "{}", answer.len());
    let end = "\n[lines 1-473 of 520000; read on with offset=474]";
    assert!(answer.ends_with(end), "{}", &answer[answer.len() - 100..]);
    let last = rig.ok("read_file", json!({ "path": "large", "offset": 520_000 }));
    assert!(last.starts_with("520000\tx") && last.ends_with("[lines 520000-520000 of 520000]"));
}
