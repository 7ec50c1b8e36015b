//! The process's TLS configuration.

use super::*;

#[test]
fn the_configuration_offers_both_versions_of_http() {
    let _ = builder();
    assert_eq!(tls().unwrap().alpn_protocols, [b"h2".as_slice(), b"http/1.1"]);
}

/// Lets a client and a server speak until one of them fails.
fn handshake(client: ClientConfig) -> Result<(), rustls::Error> {
    let cert = include_bytes!("../../tests/fixtures/localhost.cert.der");
    let key = include_bytes!("../../tests/fixtures/localhost.key.der");
    let server = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let server = server.with_safe_default_protocol_versions()?.with_no_client_auth();
    let server = server.with_single_cert(vec![cert.to_vec().into()], key.as_slice().try_into().unwrap())?;
    let mut server = rustls::ServerConnection::new(Arc::new(server))?;
    let name = "localhost".try_into().unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(client), name)?;
    while client.is_handshaking() {
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        server.read_tls(&mut &*bytes).unwrap();
        server.process_new_packets()?;
        bytes.clear();
        server.write_tls(&mut bytes).unwrap();
        client.read_tls(&mut &*bytes).unwrap();
        client.process_new_packets()?;
    }
    Ok(())
}

#[test]
fn without_root_certificates_the_error_says_what_is_missing() {
    let versions = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let versions = versions.with_safe_default_protocol_versions().unwrap();
    let error = handshake(rootless::configuration(versions)).unwrap_err().to_string();
    assert!(error.contains("ca-certificates") && error.contains("SSL_CERT_FILE"), "{error}");

    let _ = builder();
    let error = handshake(tls().unwrap()).unwrap_err().to_string();
    assert!(!error.contains("ca-certificates"), "with roots the certificate is what is wrong: {error}");
}
