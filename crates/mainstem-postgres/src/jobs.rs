//! The store of jobs.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use mainstem_journal::{Job, JobChange, JobFault, JobListing, JobStatus, JobStore, JournalError, Take};
use mainstem_message::{JobId, TenantName};

use crate::{
    journal::PostgresJournal,
    node::{Shared, repeat},
    sql::jobs as sql,
};

/// Jobs in PostgreSQL, shared by all nodes of a database. A job is active while its node is alive,
/// by the database's clock.
pub(crate) struct PostgresJobs(pub(crate) PostgresJournal);

impl fmt::Debug for PostgresJobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresJobs").field(&self.0).finish()
    }
}

#[async_trait]
impl JobStore for PostgresJobs {
    async fn add(&self, job: Job) -> Result<bool, JournalError> {
        self.0.check_writable()?;
        let add = |shared: Arc<Shared>| async move { sql::add(&shared.client().await?, &job).await };
        self.0.serve("write a job to", add).await
    }

    async fn job(&self, id: &JobId) -> Result<Option<Job>, JournalError> {
        let id = id.clone();
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::get(&shared.client().await?, &id).await }).await
        };
        self.0.serve("read a job of", read).await
    }

    async fn jobs(&self, statuses: &[JobStatus]) -> Result<Vec<Job>, JournalError> {
        let statuses = statuses.to_vec();
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::list(&shared.client().await?, &statuses).await }).await
        };
        self.0.serve("list the jobs of", read).await
    }

    async fn list(&self, listing: &JobListing) -> Result<Vec<Job>, JournalError> {
        let listing = listing.clone();
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::page(&shared.client().await?, &listing).await }).await
        };
        self.0.serve("list the jobs of", read).await
    }

    async fn count(&self, tenant: Option<&TenantName>) -> Result<usize, JournalError> {
        let tenant = tenant.map_or_else(String::new, ToString::to_string);
        let read = |shared: Arc<Shared>| async move {
            repeat(|| async { sql::count(&shared.client().await?, &tenant).await }).await
        };
        self.0.serve("read a job of", read).await
    }

    async fn change(
        &self,
        id: &JobId,
        change: JobChange,
    ) -> Result<Option<Result<Job, JobFault>>, JournalError> {
        self.0.check_writable()?;
        let id = id.clone();
        let write =
            |shared: Arc<Shared>| async move { sql::change(&mut shared.client().await?, &id, change).await };
        self.0.serve("write a job to", write).await
    }

    async fn take(&self, take: Take) -> Result<Vec<Job>, JournalError> {
        self.0.check_writable()?;
        let take = move |shared: Arc<Shared>| async move {
            sql::take(&mut shared.client().await?, shared.no(), &take).await
        };
        self.0.serve("take jobs of", take).await
    }
}
