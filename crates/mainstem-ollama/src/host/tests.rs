//! Hosts as people write them.

use mainstem_http::Api;

use super::*;
use crate::{Chat, Ollama};

fn chat(host: &str) -> Result<Url, ConfigError> {
    Ok(Chat::url(&base_url(host)?, "m"))
}

#[test]
fn a_host_is_read_as_ollamas_own_clients_read_it() {
    let check = |host: &str, expected: &str| match chat(host) {
        Ok(url) => assert_eq!(url.as_str(), format!("{expected}/api/chat"), "{host}"),
        Err(error) => assert_eq!(error.to_string(), expected, "{host}"),
    };
    // The table of `_parse_host` in ollama-python 0.6.3; the ports of the schemes are not written
    // out here.
    check("", "http://127.0.0.1:11434");
    check("1.2.3.4", "http://1.2.3.4:11434");
    check(":56789", "http://127.0.0.1:56789");
    check("1.2.3.4:56789", "http://1.2.3.4:56789");
    check("http://1.2.3.4", "http://1.2.3.4");
    check("https://1.2.3.4", "https://1.2.3.4");
    check("https://1.2.3.4:56789", "https://1.2.3.4:56789");
    check("example.com", "http://example.com:11434");
    check("example.com:56789", "http://example.com:56789");
    check("https://example.com", "https://example.com");
    check("example.com/", "http://example.com:11434");
    check("example.com:56789/", "http://example.com:56789");
    check("example.com/path", "http://example.com:11434/path");
    check("https://example.com:56789/path", "https://example.com:56789/path");
    check("example.com:56789/path/", "http://example.com:56789/path");
    check("[0001:002:003:0004::1]", "http://[1:2:3:4::1]:11434");
    check("[0001:002:003:0004::1]:56789/path/", "http://[1:2:3:4::1]:56789/path");
    check("https://[0001:002:003:0004::1]", "https://[1:2:3:4::1]");
    // Ollama itself accepts these, too.
    check("::1", "http://[::1]:11434");
    check(" \"gpu-box\" ", "http://gpu-box:11434");
    check("ollama.com", "https://ollama.com");
    check("me:secret@h", "http://me:secret@h:11434");
}

#[test]
fn where_a_server_listens_is_not_where_a_client_connects() {
    let check = |host: &str, expected: &str| assert_eq!(chat(host).unwrap().as_str(), expected);
    check("0.0.0.0", "http://127.0.0.1:11434/api/chat");
    check("http://0.0.0.0:80/ollama", "http://127.0.0.1/ollama/api/chat");
    check("[::]:1", "http://[::1]:1/api/chat");
    check("::", "http://[::1]:11434/api/chat");
}

#[test]
fn the_whole_address_is_as_good() {
    let check = |host: &str, expected: &str| assert_eq!(chat(host).unwrap().as_str(), expected);
    check("https://ollama.com/api", "https://ollama.com/api/chat");
    check("https://ollama.com/api/", "https://ollama.com/api/chat");
    check("localhost:1/api/chat", "http://localhost:1/api/chat");
}

#[test]
fn what_is_no_host_is_said_without_secrets() {
    let check = |host: &str, expected: &str| {
        assert_eq!(chat(host).unwrap_err().to_string(), format!("the base URL {expected}"), "{host}");
    };
    check("h:99999", "\"http://h:99999\" can't be used: invalid port number");
    check("me:secret@h:x", "\"http://h:x:11434\" can't be used: invalid port number");
    check(
        "ftp://h",
        "\"ftp://h\" can't be used: it must begin with http:// or https://, such as \"http://h\"",
    );
    check("a b", "\"http://a b:11434\" can't be used: invalid international domain name");
}

#[test]
fn the_cloud_is_known_by_its_host() {
    let check = |host: &str, expected: bool| {
        let ollama = Ollama::new("m").with_base_url(host).unwrap();
        assert_eq!(Chat::SERVICE.is_key_required(ollama.server().host()), expected, "{host}");
    };
    check("ollama.com", true);
    check("https://ollama.com/api", true);
    check("", false);
    check("https://ollama.com.evil.org", false);
    check("http://ollama.com:11434", false);
}
