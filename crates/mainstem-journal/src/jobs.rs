//! Jobs: runs at a time, or again and again, that any process of a store begins.

mod choose;
mod cron;
mod job;
mod memory;
mod scoped;

use std::{fmt, time::Duration};

use async_trait::async_trait;
use mainstem_event::Timestamp;
use mainstem_message::{JobId, TenantName};

use crate::{JobListing, JournalError};

pub use choose::{Candidate, Take, choose};
pub use cron::{Cron, CronError};
pub use job::{Job, JobChange, JobFault, JobRun, JobStatus};
pub(crate) use memory::MemoryJobs;
pub use scoped::ScopedJobs;

/// Stores jobs, and hands each that is due to one process.
///
/// A process that has taken a job [changes](Self::change) it with the number of its attempt. If the
/// process ends before that, another one takes the job: what it does has to have its effect once,
/// which [`Job::key`] is for.
#[async_trait]
pub trait JobStore: fmt::Debug + Send + Sync {
    /// Adds a job. Returns `false` if there is one of this id.
    ///
    /// # Errors
    /// If the store can't be written.
    async fn add(&self, job: Job) -> Result<bool, JournalError>;

    /// Returns a job; `None` if there is none of this id. A job that is over is removed after
    /// [`JOB_KEPT`].
    ///
    /// # Errors
    /// If it can't be read.
    async fn job(&self, id: &JobId) -> Result<Option<Job>, JournalError>;

    /// Returns the jobs of these statuses, of all if none is given; the one that is due first comes
    /// first.
    ///
    /// # Errors
    /// If they can't be read.
    async fn jobs(&self, statuses: &[JobStatus]) -> Result<Vec<Job>, JournalError>;

    /// Returns a page of jobs, in the order of their [places](Job::place).
    ///
    /// # Errors
    /// If they can't be read.
    async fn list(&self, listing: &JobListing) -> Result<Vec<Job>, JournalError> {
        Ok(listing.page(self.jobs(&listing.statuses).await?))
    }

    /// Returns how many jobs of a tenant are not over; `None` is for those without a tenant.
    ///
    /// # Errors
    /// If they can't be read.
    async fn count(&self, tenant: Option<&TenantName>) -> Result<usize, JournalError> {
        let live = self.jobs(&[JobStatus::Waiting, JobStatus::Active]).await?;
        let tenant = tenant.map(TenantName::as_str);
        Ok(live.iter().filter(|job| job.id.tenant() == tenant).count())
    }

    /// Changes a job. Returns it, or why the change is refused; `None` if there is none of this id.
    ///
    /// # Errors
    /// If the store can't be written.
    async fn change(
        &self,
        id: &JobId,
        change: JobChange,
    ) -> Result<Option<Result<Job, JobFault>>, JournalError>;

    /// Takes jobs that are due, by the store's clock: they are active in this process from now on.
    /// [`choose`] has the rules.
    ///
    /// # Errors
    /// If the store can't be written.
    async fn take(&self, take: Take) -> Result<Vec<Job>, JournalError>;

    /// Says that this process is alive, which has to be done every [`JOB_LEASE`] / 3. A store that
    /// knows the processes that share it does that by itself.
    ///
    /// # Errors
    /// If the store can't be written.
    async fn renew(&self) -> Result<(), JournalError> {
        Ok(())
    }
}

/// How many processes in a row may end after they have taken a job, and before its run has begun.
pub const MAX_LOSSES: u32 = 5;

/// How long a job is kept after its end.
pub const JOB_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long a process has the jobs that it has taken, unless it [renews](JobStore::renew) that.
pub const JOB_LEASE: Duration = Duration::from_secs(30);

/// Returns whether a job is not over, or not over for long.
fn is_kept(job: &Job, now: Timestamp) -> bool {
    !job.status.is_over() || now <= job.updated_at.after(JOB_KEPT)
}
