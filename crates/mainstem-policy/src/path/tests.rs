//! Paths in every spelling.

use proptest::prelude::*;

use super::{covers, touches};

#[test]
fn allowed_only_if_plainly_inside() {
    let check =
        |glob: &str, path: &str, expected| assert_eq!(covers(glob, path), expected, "{glob} | {path}");
    for inside in [
        "src/main.rs",
        "./src/main.rs",
        "src/./a/b.rs",
        "src//a.rs",
        "src/a/",
        "src",
        "src/.hidden",
        "src/a..b",
    ] {
        check("src/**", inside, true);
        check("./src/**", inside, true);
    }
    for outside in [
        "",
        ".",
        "srcs/a",
        "lib/src/a",
        "/src/a",
        "src/../etc/passwd",
        "src/a/../b",
        "src/..",
        "../src/a",
        "..",
        "src\\..\\etc",
        "src/a\\..\\..\\etc",
        "src/a\0b",
        "src/a\n",
        "SRC/a",
        "~/src/a",
        "C:/src/a",
        "file:/src/a",
    ] {
        check("src/**", outside, false);
    }
    check("src/*.rs", "src/a.rs", true);
    check("src/*.rs", "src/a/b.rs", false);
    check("src/**/*.rs", "src/a.rs", true);
    check("src/**/*.rs", "src/a/b/c.rs", true);
    check("src/**/*.rs", "src/a/b/c.txt", false);
    check("**", "a/b", true);
    check("**", "/etc/passwd", false);
    check("**", "../a", false);
    check("**", "~/.bashrc", false);
    check("**", "C:/Windows", false);
    check("**/*.md", "/etc/x.md", false);
    check("/work/**", "/work/a", true);
    check("/work/**", "work/a", false);
    check("/work/**", "/work/../etc/passwd", false);
    check("/**", "/etc/passwd", true);
    check("~/notes/**", "~/notes/a", true);
    check("~/notes/**", "~/.ssh/id", false);
    check("*", "a", true);
    check("*", "a/b", false);
}

#[test]
fn refused_however_it_is_spelled() {
    let check =
        |glob: &str, path: &str, expected| assert_eq!(touches(glob, path), expected, "{glob} | {path}");
    for spelled in [
        ".git/config",
        "./.git/config",
        ".git//config",
        ".git",
        ".git/",
        ".GIT/config",
        ".git\\config",
        "src/../.git/config",
        "../repo/.git/config",
        "/home/me/repo/.git/config",
        "/home/me/x/../repo/.git/config",
        "C:\\repo\\..\\..\\.git\\config",
        "..\\.git",
    ] {
        check(".git/**", spelled, true);
    }
    for other in ["", ".gitignore", "a.git/config", ".git/../src", "src/.git/x", "/repo/.github/x"] {
        check(".git/**", other, false);
    }
    check("**/.git/**", "src/.git/x", true);
    check("/etc/**", "/etc/passwd", true);
    check("/etc/**", "/usr/../etc/passwd", true);
    check("/etc/**", "../../../etc/passwd", true);
    check("/etc/**", "etc/passwd", false);
    check("/etc/**", "/home/etc/passwd", false);
    check("*.pem", "/keys/a.pem", true);
    check("*.pem", "keys/a.pem", false);
    check("**/*.pem", "keys/a.pem", true);
    check(".GIT/**", ".git/config", true);
    check(".git\\**", ".git/config", true);
    check("../**", "../x", true);
    check("../**", "a/../../x", true);
    check("../**", "a/../x", false);
    check("secrets/*", "a/b/../../secrets/x", true);
}

#[test]
fn a_long_path_takes_no_time() {
    let path = "a/".repeat(20_000);
    assert!(!covers("**/b/**/c", &path) && !touches("b/**/c", &format!("/{path}")));
    assert!(!touches("a", &"a/../".repeat(20_000)));
}

proptest! {
    #[test]
    fn what_is_allowed_never_climbs(glob in "[ab*/.~]{1,8}", path in "[ab/.~\\\\:]{0,12}") {
        if covers(&glob, &path) {
            prop_assert!(path.split(['/', '\\']).all(|segment| segment != ".."));
            prop_assert_eq!(glob.starts_with('/'), path.starts_with('/'));
            prop_assert!(touches(&glob, &path), "{:?} {:?}", glob, path);
        }
    }

    #[test]
    fn a_detour_hides_nothing(inner in "[ab]{1,3}(/[ab]{1,3}){0,2}", detour in "[cd]{1,3}") {
        let paths = [
            format!("{detour}/../s/{inner}"),
            format!("/root/{detour}/../s/{inner}"),
            format!("./s/{detour}/.././{inner}"),
        ];
        for path in paths {
            prop_assert!(touches("s/**", &path), "{}", path);
        }
    }

    #[test]
    fn any_text_is_read(glob in ".{0,8}", path in ".{0,40}") {
        covers(&glob, &path);
        touches(&glob, &path);
    }
}
