//! What a node does besides requests: it renews its lease, hears notices, and knows when the lease
//! is over.

use std::{convert::Infallible, pin::pin, sync::atomic::Ordering};

use futures_util::{StreamExt, future};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_postgres::{AsyncMessage, Client as Connected};

use super::{LOG_INTERVAL, PAUSE, PROGRAM, Shared};
use crate::{
    error::{Failure, Result},
    notices::CHANNEL,
    pool::{Connector, Messages, late},
    relay, sql,
};

/// Renews the lease and hears notices, on a connection that is made again whenever it is lost.
pub(super) async fn listen_and_renew(shared: &Shared, connector: &Connector) -> Infallible {
    let mut logged: Option<Instant> = None;
    loop {
        let lost = connector.connect(async |client, messages| {
            let (hearing, renewing) = (pin!(hear(shared, messages)), pin!(renew(shared, client)));
            future::select(hearing, renewing).await.factor_first().0
        });
        match lost.await {
            Ok(Err(failure)) | Err(failure) => {
                // A database that is away for long would fill a log.
                if logged.is_none_or(|at| at.elapsed() >= LOG_INTERVAL) {
                    let place = shared.place();
                    tracing::warn!(error = %failure, place, "the connection of the lease is lost");
                    logged = Some(Instant::now());
                }
            }
            Ok(Ok(never)) => match never {},
        }
        shared.notices.tell_all();
        // A replica refuses what a reader listens to; then it polls.
        sleep(if shared.only_reads { LOG_INTERVAL } else { PAUSE }).await;
    }
}

async fn hear(shared: &Shared, mut messages: Messages) -> Result<Infallible> {
    while let Some(message) = messages.next().await {
        if let AsyncMessage::Notification(notice) = message? {
            match (notice.channel(), notice.payload()) {
                (CHANNEL, sessions) => shared.notices.tell(sessions),
                (_, "asked") => shared.asked.notify_one(),
                (_, request) => shared.answers.tell(request),
            }
        }
    }
    Err(Failure::transient("the database has closed it"))
}

async fn renew(shared: &Shared, client: Connected) -> Result<Infallible> {
    let own = relay::channel(shared.no());
    let listen = format!("SET search_path = mainstem; LISTEN {CHANNEL}; LISTEN {own}");
    timeout(shared.lease.lasts() / 2, client.batch_execute(&listen)).await.map_err(late)??;
    // What came before is not heard.
    shared.notices.tell_all();
    shared.answers.tell_all();
    shared.asked.notify_one();
    loop {
        if !shared.is_closed() && !shared.only_reads {
            timeout(shared.lease.lasts() / 2, renew_once(shared, &client)).await.map_err(late)??;
        }
        sleep(shared.lease.interval()).await;
    }
}

async fn renew_once(shared: &Shared, client: &Connected) -> Result<()> {
    let asked_at = Instant::now();
    let renewed = sql::renew(client, shared.no(), shared.lease.lasts()).await?;
    if renewed == Some(true) {
        shared.draining.cancel();
    }
    if renewed.is_none() {
        // It was silent for longer than its lease, by the database's clock.
        shared.fail_all("this node's lease had ended, so another may have taken it over");
        let no = sql::join(client, &shared.name, PROGRAM, shared.lease.lasts()).await?;
        shared.no.store(no, Ordering::Release);
        tracing::info!(node = no, "joined again");
        client.batch_execute(&format!("LISTEN {}", relay::channel(no))).await?;
    }
    shared.lease.renewed(asked_at);
    Ok(())
}

/// Fails what is open whenever the lease is over: another node may write it now.
pub(super) async fn fence(shared: &Shared) -> Infallible {
    if shared.only_reads {
        return future::pending().await;
    }
    loop {
        sleep_until(shared.lease.until()).await;
        if shared.lease.is_over() {
            shared.fail_all(&shared.lost_lease());
            while shared.lease.is_over() {
                sleep(PAUSE).await;
            }
        }
    }
}
