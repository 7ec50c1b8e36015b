//! A run that is queued or active here.

use mainstem::prelude::RunHandle;
use tokio_util::sync::CancellationToken;

use crate::{app::Key, shares::Tenant};

pub(crate) struct Live {
    /// The tenant and session.
    pub(crate) of: Key,
    pub(crate) handle: RunHandle,
    /// The lowest possible number of its events.
    pub(crate) first: u64,
    /// Cancelled when the run is over and no longer counts as one of the session's.
    pub(crate) over: CancellationToken,
}

impl Live {
    pub(crate) fn new(handle: RunHandle, tenant: &Tenant) -> Self {
        let of = (tenant.clone(), handle.session().id().to_string());
        let first = handle.first();
        Self { of, handle, first, over: CancellationToken::new() }
    }
}
