//! Which calls get which client.

use tokio::runtime::Builder;

use super::*;

/// Returns the runtimes that have a client, the latest last.
fn ids() -> Vec<Id> {
    CLIENTS.lock().unwrap().iter().map(|(id, _)| *id).collect()
}

#[test]
fn the_latest_runtimes_have_a_client() {
    assert!(client().is_ok(), "also outside of a runtime");
    assert_eq!(ids(), []);
    let runtimes: Vec<_> = (0..=RUNTIMES).map(|_| Builder::new_current_thread().build().unwrap()).collect();
    for runtime in &runtimes {
        for _ in 0..2 {
            runtime.block_on(async { client().unwrap() });
        }
    }
    let latest: Vec<_> = runtimes[1..].iter().map(|runtime| runtime.handle().id()).collect();
    assert_eq!(ids(), latest);
}

#[test]
fn the_configuration_offers_both_versions_of_http() {
    let _ = builder();
    assert_eq!(tls().unwrap().alpn_protocols, [b"h2".as_slice(), b"http/1.1"]);
}
