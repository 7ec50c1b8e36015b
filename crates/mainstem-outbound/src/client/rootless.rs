//! TLS on a machine without root certificates: no server can be verified, and the error says why.

use std::sync::Arc;

use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, SignatureScheme, WantsVerifier,
    client::{
        WantsClientCert,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
};

const MISSING: &str = "this machine has no root certificates: install them (`ca-certificates`), \
                       or name a file with `SSL_CERT_FILE`";

/// Returns a configuration that refuses every server.
pub(super) fn configuration(tls: ConfigBuilder<ClientConfig, WantsVerifier>) -> ClientConfig {
    let schemes = tls.crypto_provider().signature_verification_algorithms.supported_schemes();
    let tls: ConfigBuilder<_, WantsClientCert> =
        tls.dangerous().with_custom_certificate_verifier(Arc::new(NoRoots(schemes)));
    tls.with_no_client_auth()
}

fn refused<T>() -> Result<T, Error> {
    Err(Error::General(MISSING.to_owned()))
}

/// Refuses every certificate. It has the schemes that it offers.
#[derive(Debug)]
struct NoRoots(Vec<SignatureScheme>);

impl ServerCertVerifier for NoRoots {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        refused()
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        refused()
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        refused()
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}
