//! URLs, and what is shown of them.

use std::path::Path;

use super::*;

#[test]
fn a_place_has_no_password_and_an_error_no_url() {
    let place = |url: &str| Settings::parse(url).map_err(|error| error.to_string()).map(|one| one.place);
    for (url, expected) in [
        ("postgres://db", "postgres://db:5432/"),
        ("postgres://fleet:secret@db:6000/agents", "postgres://fleet@db:6000/agents"),
        ("postgresql://fleet:secret@db", "postgres://fleet@db:5432/fleet"),
        ("host=db user=fleet password=secret dbname=agents", "postgres://fleet@db:5432/agents"),
        ("postgres://fleet@[::1]:6000/agents?sslmode=verify-full", "postgres://fleet@::1:6000/agents"),
    ] {
        assert_eq!(place(url).unwrap(), expected, "{url}");
    }
    for (url, roots, mode) in [
        (
            "postgres://db?sslrootcert=/etc/my%20ca.pem&sslmode=verify-ca",
            Some("/etc/my ca.pem"),
            SslMode::Require,
        ),
        ("postgres://db?sslmode=verify-full&sslrootcert=ca.pem", Some("ca.pem"), SslMode::Require),
        ("postgres://db?sslrootcert=system", None, SslMode::Require),
        ("host=db sslrootcert='/ca.pem' sslmode=require", Some("/ca.pem"), SslMode::Require),
    ] {
        let settings = Settings::parse(url).unwrap();
        assert_eq!(settings.roots.as_deref(), roots.map(Path::new), "{url}");
        assert_eq!(
            (settings.config.get_ssl_mode(), &*settings.place),
            (mode, "postgres://db:5432/"),
            "{url}"
        );
    }
    for url in
        ["postgres://", "postgres://f:secret@db/x?sslmode=sometimes", "postgres://f:secret@db:port/x", ""]
    {
        let error = place(url).unwrap_err();
        assert!(!error.contains("secret"), "{error}");
    }
    assert!(!format!("{:?}", Settings::parse("postgres://f:secret@db/x").unwrap()).contains("secret"));
}
