//! The page at `/`: what is sent, how it is remembered, and where its links lead.

use axum::Router;
use mainstem::prelude::ScriptedModel;
use mainstem_server::Server;
use reqwest::{Method, Response};
use tokio::net::TcpListener;

use crate::rig::{Rig, fleet};

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn the_page_needs_no_token_and_runs_only_its_own_files() {
    let rig = Rig::of(ScriptedModel::new()).await;
    let page = rig.stranger(Method::GET, "/").send().await.unwrap();
    assert_eq!((page.status().as_u16(), header(&page, "content-type")), (200, "text/html; charset=utf-8"));
    let policy = header(&page, "content-security-policy");
    assert!(policy.contains("default-src 'self'") && !policy.contains("unsafe"), "{policy}");
    assert!(policy.contains("require-trusted-types-for 'script'"), "{policy}");
    let html = page.text().await.unwrap();
    assert!(!html.contains("http://") && !html.contains("https://"), "{html}");
    // Only GET.
    let posted = rig.stranger(Method::POST, "/").send().await.unwrap();
    assert_eq!(posted.status(), 405);
    // Not under the name of another host.
    let elsewhere = rig.stranger(Method::GET, "/").header("host", "evil.example").send().await.unwrap();
    assert_eq!(elsewhere.status(), 403);
}

#[tokio::test]
async fn a_file_is_sent_once_and_compressed() {
    let rig = Rig::of(ScriptedModel::new()).await;
    // Without it the client would decompress what it reads.
    let client = reqwest::Client::builder().no_gzip().build().unwrap();
    let ask = || client.get(format!("{}/page/page.js", rig.url));
    let plain = ask().header("accept-encoding", "identity").send().await.unwrap();
    let compressed = ask().header("accept-encoding", "br, gzip").send().await.unwrap();
    assert_eq!((header(&plain, "content-encoding"), header(&compressed, "content-encoding")), ("", "gzip"));
    assert_eq!(header(&plain, "cache-control"), "no-cache");
    let etag = header(&plain, "etag").to_owned();
    assert_eq!(header(&compressed, "etag"), etag);
    let (plain, compressed) = (plain.bytes().await.unwrap(), compressed.bytes().await.unwrap());
    assert!(compressed.len() < plain.len() / 2 && compressed.len() < 80_000, "{}", compressed.len());
    let read = rig.stranger(Method::GET, "/page/page.js").send().await.unwrap();
    assert_eq!(read.bytes().await.unwrap(), plain);

    let known = ask().header("if-none-match", &etag).send().await.unwrap();
    assert_eq!((known.status().as_u16(), header(&known, "etag")), (304, &*etag));
    assert!(known.bytes().await.unwrap().is_empty());
    assert_eq!(ask().header("if-none-match", "W/\"another\"").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn links_are_right_where_the_routes_are_nested() {
    let server = Server::new(fleet(ScriptedModel::new()).build().unwrap()).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = Router::new().nest("/at/agents", server.router());
    #[expect(clippy::disallowed_methods, reason = "ended with the test")]
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    let page = reqwest::Url::parse(&format!("{url}/at/agents")).unwrap();
    let html = client.get(page.clone()).send().await.unwrap().text().await.unwrap();
    let links: Vec<_> = html.split('"').filter(|part| part.starts_with("./")).collect();
    assert_eq!(links.len(), 3, "{html}");
    for link in links {
        let file = client.get(page.join(link).unwrap()).send().await.unwrap();
        assert_eq!(file.status(), 200, "{link}");
    }
    serving.abort();
}
