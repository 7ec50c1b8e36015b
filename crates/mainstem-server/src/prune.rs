//! Deletes sessions that are not kept, from time to time.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use mainstem::event::{Clock, SystemClock};
use tokio::time::sleep;

use crate::app::App;

/// How often sessions are deleted.
const INTERVAL: Duration = Duration::from_secs(3600);

/// Deletes sessions that are not kept; never returns.
pub(crate) async fn prune(app: &Arc<App>) -> Infallible {
    let keep = app.limits.keep;
    if keep.is_all() || app.harness.journal().is_none() {
        return pending().await;
    }
    let records = app.harness.sessions().records();
    loop {
        // One that is open can't be deleted.
        if let Some(idle) = keep.max_idle {
            app.harness.sessions().store().close_idle(idle);
        }
        match records.prune(keep, SystemClock.now()).await {
            Ok(deleted) if deleted.is_empty() => {}
            Ok(deleted) => tracing::info!(sessions = deleted.len(), "deleted sessions that are not kept"),
            Err(error) => tracing::warn!(%error, "sessions that are not kept can't be deleted"),
        }
        sleep(INTERVAL).await;
    }
}
