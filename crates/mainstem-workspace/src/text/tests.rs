//! Bounds of lists and lines.

use super::*;

#[test]
fn a_listing_keeps_the_first_items_and_counts_the_rest() {
    let mut listing = Listing::new(2);
    assert!(!listing.is_full());
    ["a", "b", "c", "d"].iter().for_each(|item| listing.push(item));
    assert!(listing.is_full());
    assert_eq!(listing.left_out(), 2);
    assert_eq!(listing.finish("none", &["and 2 more".into()]), "a\nb\n[and 2 more]");
    assert_eq!(Listing::new(2).finish("none", &[]), "none");
    assert_eq!(Listing::new(2).finish("none", &["why".into()]), "none\n[why]");
}

#[test]
fn a_listing_is_bounded_in_bytes_and_leaves_no_gap() {
    let mut listing = Listing::new(usize::MAX);
    let item = "x".repeat(1000);
    (0..100).for_each(|_| listing.push(&item));
    listing.push("short, but after a gap");
    assert_eq!(listing.left_out(), 101 - 49);
    assert!(listing.finish("", &[]).len() <= MAX_BYTES);
}

#[test]
fn lines_are_cut_around_what_matters() {
    #[track_caller]
    fn check(text: &str, max: usize, around: usize, expected: &str) {
        assert_eq!(cut(text, max, around), expected);
    }
    check("short", 5, 0, "short");
    check("0123456789", 4, 0, "0123… [line of 10 bytes, cut]");
    check("0123456789", 4, 5, "…4567… [line of 10 bytes, cut]");
    check("0123456789", 4, 9, "…6789… [line of 10 bytes, cut]");
    check("ééééé", 5, 0, "éé… [line of 10 bytes, cut]");
    check("ééééé", 5, 6, "…ééé… [line of 10 bytes, cut]");
}

#[test]
fn paths_stay_on_their_line() {
    assert_eq!(shown(Path::new("a b/ü.rs")), "a b/ü.rs");
    assert_eq!(shown(Path::new("a\n[exit status 0]")), "a\\n[exit status 0]");
}
