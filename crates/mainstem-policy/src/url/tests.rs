//! Addresses that look like others.

use proptest::prelude::*;

use super::{covers, touches};

#[test]
fn allowed_only_on_that_server() {
    let check = |glob: &str, url: &str, expected| assert_eq!(covers(glob, url), expected, "{glob} | {url}");
    for good in [
        "https://docs.rs/serde",
        "https://docs.rs",
        "https://docs.rs/",
        "HTTPS://Docs.RS/x",
        "https://docs.rs/?q=https://a",
    ] {
        check("https://docs.rs/*", good, true);
    }
    for bad in [
        "http://docs.rs/x",
        "https://docs.rs.evil.com/x",
        "https://docs.rs@evil.com/x",
        "https://evil.com/https://docs.rs/x",
        "https://evil.com#https://docs.rs/",
        "https://docs.rs:8443/x",
        "https://docs.rs\\@evil.com/",
        "https://docs.rs/\nx",
        " https://docs.rs/x",
        "docs.rs/x",
        "",
    ] {
        check("https://docs.rs/*", bad, false);
    }
    check("https://*.rs/*", "https://docs.rs/x", true);
    check("https://*.rs/*", "https://evil.com/x.rs/y", false);
    check("https://*.rs/*", "https://evil.com?.rs/", false);
    check("https://*.rs/*", "https://evil.com#.rs/", false);
    check("https://docs.*/*", "https://docs.rs/x", true);
    check("https://docs.*/*", "https://docs.rs@evil.com/x", false);
    check("https://docs.*/*", "https://docs.rs%2eevil.com/x", false);
    check("https://*", "https://evil.com/x/y", true);
    check("https://*", "http://evil.com/x/y", false);
    check("https://a.com/pub/*", "https://a.com/pub/x", true);
    check("https://a.com/pub/*", "https://a.com/pub/../x", false);
    check("https://a.com/pub/*", "https://a.com/pub/%2e%2e/x", false);
    check("https://a.com/pub/*", "https://a.com/pub/.%2E/x", false);
    check("https://a.com/pub/*", "https://a.com/pub/..%2fx", false);
    check("https://a.com/pub/*", "https://a.com/pub/a..b", true);
}

#[test]
fn refused_in_any_spelling() {
    let check = |glob: &str, url: &str, expected| assert_eq!(touches(glob, url), expected, "{glob} | {url}");
    for spelled in [
        "https://evil.com/x",
        "https://EVIL.com",
        " https://evil.com/x",
        "https://user:pw@evil.com/x",
        "https://docs.rs@evil.com/x",
        "https://evil.com./x",
        "https:\\\\evil.com\\x",
        "ht\ntps://evil.com/x",
        "https://evil.com/../x",
        "https://evil.com:443/x",
        "https://u@evil.com.:8443/x",
        "evil.com/x",
        "//evil.com/x",
    ] {
        check("https://evil.com/*", spelled, true);
    }
    check("https://a.com/admin/*", "https://a.com/x/../admin/y?z", true);
    check("https://a.com/admin/*", "https://a.com/x/%2E%2e/admin/y", true);
    check("https://a.com/admin/*", "https://a.com//admin/y", true);
    check("https://a.com/admin/*", "https://a.com/x/admin/y", false);
    check("https://evil.com:8443/*", "https://evil.com:8443/x", true);
    check("https://evil.com:8443/*", "https://evil.com:443/x", false);
    check("http://[::1]/*", "http://[::1]:80/", true);
    check("https://evil.com/*", "https://evil.company/x", false);
    check("*evil.com*", "http://a.evil.com:80/x", true);
    check("*://169.254.169.254*", "http://169.254.169.254/latest", true);
}

proptest! {
    #[test]
    fn what_is_allowed_is_also_noticed(glob in "(https?://)?[ab.*]{1,4}(/[ab*]{0,3})?", url in "(https?://)?[ab.:@]{1,5}([/?#][ab.]{0,3})?") {
        prop_assert!(!covers(&glob, &url) || touches(&glob, &url), "{} {}", glob, url);
    }

    #[test]
    fn any_text_is_read(glob in ".{0,12}", url in ".{0,40}") {
        covers(&glob, &url);
        touches(&glob, &url);
    }
}
