//! The sessions that are active, in this process and in others.

use std::collections::HashSet;

use mainstem_api::SessionView;
use mainstem_journal::{ActiveSession, JournalError, Part};
use mainstem_policy::Tenant;

use super::Sessions;
use crate::view;

/// A session that is active: a run is queued or active, or background tasks are running; or one
/// that was, when its process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveSession {
    /// The tenant that it belongs to.
    pub tenant: Tenant,
    /// The session; its id is the one that the tenant knows.
    pub view: SessionView,
    /// Whether it is open in this process.
    pub is_here: bool,
    /// The name of the process that has it open, if several share the journal.
    pub node: Option<String>,
    /// Whether its process has ended within a run: it is idle until another process opens it.
    pub is_lost: bool,
}

impl Sessions {
    /// Returns the sessions that are active, at most `max`; the one whose run began last comes
    /// first. `part` is [`Part::All`] for those of all tenants, which only the sessions without a
    /// tenant have.
    ///
    /// A session that another process has open is among them while a run is active: what else it
    /// does is known to that process alone. So is one whose process has ended within a run.
    ///
    /// # Errors
    /// The journal can't be read.
    pub async fn live(&self, part: &Part, max: usize) -> Result<Vec<LiveSession>, JournalError> {
        let has_all = *part == Part::All && self.tenant.is_none();
        let node = self.journal().and_then(|journal| journal.node());
        let here = self.store.active(|tenant| has_all || *tenant == self.tenant);
        let here = here.into_iter().map(|(tenant, view)| LiveSession {
            tenant,
            view,
            is_here: true,
            node: node.clone(),
            is_lost: false,
        });
        let mut live: Vec<_> = here.collect();
        if let Some(journal) = self.journal() {
            let part = if has_all { Part::All } else { Part::Of(None) };
            let known: HashSet<_> =
                live.iter().map(|live| (live.tenant.clone(), live.view.id.clone())).collect();
            let elsewhere =
                journal.active(&part, max).await?.into_iter().filter_map(|active| self.elsewhere(active));
            live.extend(
                elsewhere.filter(|live| !known.contains(&(live.tenant.clone(), live.view.id.clone()))),
            );
        }
        live.sort_by_key(|live| std::cmp::Reverse(live.view.last_run_at));
        live.truncate(max);
        Ok(live)
    }

    /// Returns a session with a run that this process does not have; `None` if this process has it
    /// open.
    fn elsewhere(&self, active: ActiveSession) -> Option<LiveSession> {
        let ActiveSession { session, is_open, node } = active;
        let mut view = view::recorded(&session, is_open);
        let tenant = match session.id.tenant() {
            Some(name) => Some(name.parse().ok()?),
            None => self.tenant.clone(),
        };
        if let Some(tenant) = session.id.tenant().and(tenant.as_ref()) {
            view.id = session.id.unscoped(tenant)?;
        }
        // What this process has open has ended its run a moment ago.
        let open_here = self.store.get(&(tenant.clone(), view.id.clone()));
        let is_open_here = open_here.is_some_and(|session| !session.has_failed());
        (!is_open_here).then_some(LiveSession { tenant, view, is_here: false, node, is_lost: !is_open })
    }
}
