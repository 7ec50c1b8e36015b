//! The process's TLS configuration.

use super::*;

#[test]
fn the_configuration_offers_both_versions_of_http() {
    let _ = builder();
    assert_eq!(tls().unwrap().alpn_protocols, [b"h2".as_slice(), b"http/1.1"]);
}
