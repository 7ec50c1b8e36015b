//! Requests to the node that has a session.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use mainstem_journal::{Journal, JournalError};
use mainstem_message::SessionId;
use mainstem_testing::{Postgres, Proxy, journal::open_log};
use tokio::time::{sleep, timeout};

use crate::{LEASE, join};

const WHAT: &[u8] = b"what";

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_node_ends_after_it_took_it_fails_and_is_not_taken_again() {
    let server = Postgres::start();
    for sends in [false, true] {
        let proxy = Proxy::before([server.port()]).await;
        let (cut, there) = (join(&server.url_at(proxy.port())).await, join(&server.url()).await);
        let id: SessionId = format!("s-{sends}").parse().unwrap();
        let _log = open_log(&cut.journal(), id.as_str()).await;
        let (relay, mut asked) = (there.journal().relay().unwrap(), cut.journal().relay().unwrap().asked());
        #[expect(clippy::disallowed_methods, reason = "it is awaited")]
        let reading = tokio::spawn(async move {
            let parts = relay.ask(&id, WHAT.to_vec()).await?.expect("it is taken");
            parts.try_collect::<Vec<_>>().await
        });
        let taken = asked.next().await.unwrap();
        assert_eq!(taken.request, WHAT);
        if sends {
            taken.answer.send(b"part".to_vec()).await.unwrap();
        }
        proxy.cut();
        let read = timeout(LEASE * 3, reading).await.expect("its wait has an end").unwrap();
        let error = read.unwrap_err();
        assert!(error.to_string().contains("what was asked may be done"), "{error}");
        proxy.heal();
        // Its node is back: the answer comes too late, and the request does not come again.
        assert!(timeout(LEASE * 4, taken.answer.end()).await.expect("it is told").is_err());
        drop(taken);
        assert!(timeout(LEASE, asked.next()).await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_not_taken_can_be_done_by_another_node() {
    let server = Postgres::start();
    let proxy = Proxy::before([server.port()]).await;
    let (cut, there) = (join(&server.url_at(proxy.port())).await, join(&server.url()).await);
    let _log = open_log(&cut.journal(), "s").await;
    let id: SessionId = "s".parse().unwrap();
    let relay = there.journal().relay().unwrap();
    proxy.cut();
    let answer = timeout(LEASE * 3, relay.ask(&id, WHAT.to_vec())).await.expect("its wait has an end");
    assert!(answer.unwrap().is_none());
    let opened = there.journal().open(&id).await;
    assert!(opened.is_ok(), "{:?}", opened.err());
}

/// The connections of the asker break again and again while an answer of many parts comes.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_has_all_its_parts_once_whatever_connections_break() {
    let server = Postgres::start();
    let proxy = Proxy::before([server.port()]).await;
    let (here, asker) = (join(&server.url()).await, join(&server.url_at(proxy.port())).await);
    let _log = open_log(&here.journal(), "s").await;
    let relay = here.journal().relay().unwrap();
    let answers = async {
        let taken = relay.asked().next().await.unwrap();
        for part in 0..400_u32 {
            taken.answer.send(part.to_be_bytes().to_vec()).await?;
            if part % 8 == 0 {
                sleep(Duration::from_millis(5)).await;
            }
        }
        taken.answer.end().await
    };
    let breaks = async {
        loop {
            sleep(Duration::from_millis(60)).await;
            proxy.cut();
            proxy.heal();
        }
    };
    let reads = async {
        let asks = asker.journal().relay().unwrap();
        let parts = asks.ask(&"s".parse().unwrap(), WHAT.to_vec()).await?.expect("it is open");
        parts.map_ok(|part| u32::from_be_bytes(part.try_into().unwrap())).try_collect::<Vec<_>>().await
    };
    let both = async { tokio::join!(reads, answers) };
    let (read, answered): (Result<Vec<u32>, JournalError>, _) = tokio::select! {
        both = timeout(Duration::from_secs(60), both) => both.expect("it comes to its end"),
        () = breaks => unreachable!(),
    };
    assert!(read.unwrap().into_iter().eq(0..400));
    answered.unwrap();
}
