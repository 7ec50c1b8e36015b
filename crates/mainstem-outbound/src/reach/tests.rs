//! Which hosts are in reach.

use super::*;

#[track_caller]
fn check(allowed: &[&str], url: &str, expected: Result<(), &str>) {
    let reach = allowed.iter().fold(Reach::public(), |reach, host| reach.with_host(host.parse().unwrap()));
    let checked = reach.check(&url.parse().unwrap()).map_err(|error| error.to_string());
    assert_eq!(checked, expected.map_err(str::to_owned), "{url} within {allowed:?}");
}

#[test]
fn only_public_addresses_are_in_reach() {
    for address in [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[fe80::1]",
        "[fc00::1]",
        "[fd12::1]",
        "[ff02::1]",
        "[2001:db8::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::10.0.0.1]",
        "[2002:7f00:1::]",
        "[64:ff9b:1:a00:0:100:808:808]",
        "192.88.99.1",
    ] {
        let reach = Reach::public();
        let url: Url = format!("http://{address}/x").parse().unwrap();
        assert!(reach.check(&url).is_err(), "{address}");
        assert!(reach.with_host("*".parse().unwrap()).check(&url).is_ok(), "{address}");
    }
    for address in [
        "1.1.1.1",
        "8.8.8.8",
        "100.128.0.1",
        "172.32.0.1",
        "198.20.0.1",
        "[2606:4700::1]",
        "[64:ff9b::1.1.1.1]",
    ] {
        check(&[], &format!("http://{address}/x"), Ok(()));
    }
    // What parses to a loopback address is one.
    check(
        &[],
        "http://2130706433/",
        Err("127.0.0.1 is not a public address; `remote_hosts` allows this host"),
    );
    check(&[], "http://0x7f.1/", Err("127.0.0.1 is not a public address; `remote_hosts` allows this host"));
}

#[test]
fn the_operator_allows_hosts() {
    let private = Err("10.1.2.3 is not a public address; `remote_hosts` allows this host");
    check(&["10.0.0.0/8"], "http://10.1.2.3", Ok(()));
    check(&["10.1.2.3"], "http://10.1.2.3", Ok(()));
    check(&["10.1.2.2/31"], "http://10.1.2.3", Ok(()));
    check(&["10.1.2.0/31"], "http://10.1.2.3", private);
    check(&["0.0.0.0/0"], "http://10.1.2.3", Ok(()));
    check(&["::/0"], "http://10.1.2.3", private);
    check(&["::ffff:10.0.0.0/104"], "http://10.1.2.3", Ok(()));
    check(&["::ffff:10.0.0.1"], "http://10.1.2.3", private);
    check(&["::ffff:10.0.0.1"], "http://10.0.0.1", Ok(()));
    check(&["fd00::/8"], "http://[fd12::1]", Ok(()));
    check(&["10.0.0.0/8"], "http://[::ffff:10.0.0.1]", Ok(()));
    for text in ["", "10.0.0.0/33", "10.0.0.0/x", "a b", "http://x", "x/8", "::1/129", "::ffff:10.0.0.1/95"] {
        assert!(text.parse::<Host>().is_err(), "{text}");
    }
}

#[tokio::test]
async fn a_name_is_resolved_within_the_reach() {
    let resolve = async |reach: Reach| {
        let resolved = Checked(reach).resolve("localhost".parse().unwrap()).await;
        resolved.map(Iterator::count).map_err(|error| error.to_string())
    };
    let error = resolve(Reach::public()).await.unwrap_err();
    assert!(error.starts_with("localhost has the address "), "{error}");
    assert!(resolve(Reach::public().with_host("localhost".parse().unwrap())).await.unwrap() > 0);
    let networks =
        Reach::public().with_host("127.0.0.0/8".parse().unwrap()).with_host("::1".parse().unwrap());
    assert!(resolve(networks).await.unwrap() > 0);
}
