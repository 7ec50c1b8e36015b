//! One row a size.

use super::*;

#[test]
fn sizes_are_read_and_shown() {
    #[track_caller]
    fn check(text: &str, bytes: Option<u64>, shown: &str) {
        assert_eq!(parse(text), bytes, "{text}");
        if let Some(bytes) = bytes {
            assert_eq!(show(bytes), shown);
        }
    }
    check("4GiB", Some(4 << 30), "4 GiB");
    check("4 gb", Some(4 << 30), "4 GiB");
    check("1536M", Some(1536 << 20), "1536 MiB");
    check("2T", Some(2 << 40), "2 TiB");
    check("1000", Some(1000), "1000 bytes");
    check("0", Some(0), "0 bytes");
    check("", None, "");
    check("GiB", None, "");
    check("4 parsecs", None, "");
    check("-1", None, "");
    check("99999999999T", None, "");
}
