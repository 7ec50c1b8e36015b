//! Texts of people, and the URLs that they are parsed to.

use super::*;

#[test]
fn what_is_no_url_is_said_without_secrets() {
    let check = |text: &str, expected: &str| match parse(text) {
        Ok(mut url) => {
            extend(&mut url, &["v1", "a b"]);
            assert_eq!(format!("{url} at {}", host(&url)), expected);
        }
        Err(error) => assert_eq!(error.to_string(), expected),
    };
    check("https://api.example.com", "https://api.example.com/v1/a%20b at api.example.com");
    check(" http://[::1]:1/x/ ", "http://[::1]:1/x/v1/a%20b at [::1]:1");
    check("https://h/x?version=1", "https://h/x/v1/a%20b?version=1 at h");
    let wants = "it must begin with http:// or https://, such as";
    check(
        "localhost:80/v1",
        &format!("the base URL \"localhost:80/v1\" can't be used: {wants} \"http://localhost:80/v1\""),
    );
    check(
        "ftp://me:secret@h/x",
        &format!("the base URL \"ftp://h/x\" can't be used: {wants} \"http://h/x\""),
    );
    for secret in [
        "https://me:secret@h:x/v1?key=secret",
        "https://me:secret@h:99999/v1?key=secret#secret",
        "https://me:p?secret@h/x",
        "https://me:p/secret@h/x",
        "https://h:99999/?key=a@secret",
        "me:secret@h?key=secret",
    ] {
        let error = parse(secret).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
    check("", &format!("the base URL \"\" can't be used: {wants} \"http://\""));
    check("http://", "the base URL \"http://\" can't be used: empty host");
    check("http://h:99999", "the base URL \"http://h:99999\" can't be used: invalid port number");
}
