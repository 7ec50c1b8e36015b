//! Which files are attached, and as what.

use std::fs;

use super::*;

/// Returns the blocks after the prompt, or the error.
fn attached(files: &[(&str, &[u8])]) -> Result<Vec<String>, String> {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<_> = files.iter().map(|(name, _)| dir.path().join(name)).collect();
    paths.iter().zip(files).for_each(|(path, (_, bytes))| fs::write(path, bytes).unwrap());
    let mut attachments = Attachments::default();
    for path in &paths {
        attachments.add(path).map_err(|error| format!("{error:#}"))?;
    }
    let message = attachments.into_message("look");
    let blocks = message.content.iter().skip(1).map(|block| match block {
        ContentBlock::Text { text, .. } => {
            text.strip_prefix("\n\n").unwrap().trim_end_matches("\n\n").to_owned()
        }
        ContentBlock::Data { media_type, source: DataSource::Base64(data), .. } => {
            format!("{media_type} {} bytes", BASE64_STANDARD.decode(data).unwrap().len())
        }
        other => format!("{other:?}"),
    });
    Ok(blocks.collect())
}

#[track_caller]
fn check(name: &str, bytes: &[u8], expected: &[&str]) {
    assert_eq!(attached(&[(name, bytes)]).unwrap(), expected);
}

#[track_caller]
fn check_error(name: &str, bytes: &[u8], expected: &str) {
    assert_eq!(attached(&[(name, bytes)]).unwrap_err(), expected);
}

#[test]
fn a_file_is_known_by_its_bytes() {
    check("a", b"\x89PNG\r\n\x1a\n", &["The file `a`:", "image/png 8 bytes"]);
    check("a.txt", b"\xff\xd8\xff\xe0", &["The file `a.txt`:", "image/jpeg 4 bytes"]);
    check("a.pdf", b"%PDF-1.7\n", &["The file `a.pdf`:", "application/pdf 9 bytes"]);
    check("a.wav", b"RIFF\x24\x08\x00\x00WAVEfmt ", &["The file `a.wav`:", "audio/wav 16 bytes"]);
    check("a.mp3", b"ID3\x04\x00\x00", &["The file `a.mp3`:", "audio/mpeg 6 bytes"]);
    check("a.rs", "fn ä() {}\n".as_bytes(), &["The file `a.rs`:\n\nfn ä() {}\n"]);
    check("a.html", b"<!DOCTYPE html><p>", &["The file `a.html`:\n\n<!DOCTYPE html><p>"]);
    check("a.md", b"BMW and GIF files", &["The file `a.md`:\n\nBMW and GIF files"]);
    check("a.sh", b"#!/bin/sh\ntrue\n", &["The file `a.sh`:\n\n#!/bin/sh\ntrue\n"]);
}

#[test]
fn what_no_model_reads_is_refused() {
    check_error("a", b"", "the file is empty");
    let supported = "supported are PNG, JPEG, GIF, WebP, PDF, WAV, MP3, FLAC and UTF-8 text";
    check_error("a.zip", b"PK\x03\x04\x14\x00", &format!("the file type is application/zip; {supported}"));
    check_error("a", b"\x80\x81", &format!("the file type is unknown; {supported}"));
    let missing = Attachments::default().add(Path::new("/missing")).unwrap_err();
    assert_eq!(format!("{missing:#}"), "No such file or directory (os error 2)");
}

#[test]
fn files_have_a_limit_together() {
    let half = vec![b'a'; 10 << 20];
    assert_eq!(attached(&[("a", &half), ("b", &half)]).unwrap().len(), 2);
    let error = attached(&[("a", &half), ("b", &half), ("c", b"a")]).unwrap_err();
    assert_eq!(error, "attached files have at most 20 MiB together");
}

#[test]
fn files_are_mentioned() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    ["a.txt", "b", "c.", "my file"].iter().for_each(|name| fs::write(path(name), "x").unwrap());
    let at = |name: &str| format!("@{}", path(name).display());
    let check = |text: &str, expected: &[&str]| {
        let (files, missing) = mentioned(text);
        assert_eq!(files, expected.iter().map(|name| path(name)).collect::<Vec<_>>(), "{text}");
        missing
    };
    check(&format!("Compare {} and {}.", at("a.txt"), at("b")), &["a.txt", "b"]);
    check(&format!("({}, {})", at("b"), at("c.")), &["b", "c."]);
    check(&format!("{} {}", at("b"), at("b")), &["b"]);
    let missing = check(&format!("@someone {} me@b.example @a/b?", at("missing.txt")), &[]);
    assert_eq!(missing, [path("missing.txt").display().to_string(), "a/b".to_owned()]);
    check(&format!("@{}", dir.path().display()), &[]);
    check(&format!("See @\"{}\".", path("my file").display()), &["my file"]);
    #[cfg(unix)]
    check(&format!("See @{}.", path("my file").display().to_string().replace(' ', "\\ ")), &["my file"]);
}
