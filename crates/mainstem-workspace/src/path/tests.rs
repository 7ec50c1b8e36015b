//! Parsing of paths.

use super::*;

#[test]
fn paths_are_below_the_root_or_refused() {
    #[track_caller]
    fn check(path: &str, expected: Result<&str, &str>) {
        let roots = [Path::new("/real/ws"), Path::new("/link")];
        let found = Inside::new(path, &roots).map(|path| path.relative).map_err(|error| error.to_string());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.to_str(), Some(expected)),
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
            (found, _) => panic!("{path:?}: {found:?}"),
        }
    }
    check("a/b.rs", Ok("a/b.rs"));
    check(".", Ok("."));
    check("../x", Ok("../x"));
    check("a b\u{1F600}", Ok("a b\u{1F600}"));
    check("~x/y", Ok("~x/y"));
    check("/real/ws", Ok("."));
    check("/real/ws/", Ok("."));
    check("/real/ws/a/b", Ok("a/b"));
    check("/link/a", Ok("a"));
    check("/real/ws/../x", Ok("../x"));
    check("/real/wsx", Err(r#""/real/wsx" leads out"#));
    check("/etc/passwd", Err(r#""/etc/passwd" leads out"#));
    check("/", Err(r#""/" leads out"#));
    check("", Err(r#""" is empty"#));
    check("a\0b", Err(r#""a\0b" has a NUL"#));
    check("~", Err(r#""~" begins with ~"#));
    check("~/x", Err(r#""~/x" begins with ~"#));
    check(&"x/".repeat(2049), Err("(4098 bytes) is too long"));
}
