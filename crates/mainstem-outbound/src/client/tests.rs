//! Which calls get which client.

use tokio::runtime::Builder;

use super::*;

#[test]
fn a_runtime_has_one_client_until_its_last_holder_ends() {
    let [one, other] = [(); 2].map(|()| Builder::new_current_thread().build().unwrap());
    let of_one = || one.block_on(async { shared().unwrap() });
    let client = of_one();
    assert!(Arc::ptr_eq(&client, &of_one()));
    assert!(!Arc::ptr_eq(&client, &other.block_on(async { shared().unwrap() })));
    assert!(!Arc::ptr_eq(&client, &shared().unwrap()), "outside of a runtime");
    let ended = Arc::downgrade(&client);
    drop(client);
    assert!(ended.upgrade().is_none());
    let _client = of_one();
    assert_eq!(SHARED.lock().unwrap().len(), 1, "runtimes without a client are forgotten");
}

#[test]
fn the_configuration_offers_both_versions_of_http() {
    let _ = builder();
    assert_eq!(tls().unwrap().alpn_protocols, [b"h2".as_slice(), b"http/1.1"]);
}
