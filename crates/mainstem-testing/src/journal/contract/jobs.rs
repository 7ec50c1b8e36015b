//! The contract of `JobStore`: what is due, who takes it, and what becomes of it.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::future::join_all;
use mainstem_event::{Clock, Outcome, SystemClock};
use mainstem_journal::{
    Job, JobChange, JobFault, JobListing, JobRun, JobStatus, JobStore, Journal, MAX_LOSSES, Part, Scoped,
    Take,
};
use mainstem_message::{JobId, RunId};
use serde_json::json;

/// Checks the whole contract over a journal that has no jobs, and is not a tenant's part of one.
///
/// # Panics
/// If its store of jobs breaks it.
pub async fn check(journal: &Arc<dyn Journal>) {
    let jobs = journal.jobs().expect("it stores jobs");
    a_job_is_added_once_and_found(&*jobs).await;
    what_is_due_is_taken_and_finished(&*jobs).await;
    a_job_that_repeats_is_due_again(&*jobs).await;
    what_is_cancelled_is_not_run(&*jobs).await;
    what_was_taken_and_is_not_held_is_taken_again(&*jobs).await;
    what_ends_its_processes_is_not_taken_without_end(&*jobs).await;
    tenants_take_turns_and_see_their_own(journal).await;
    each_job_is_taken_by_one_of_many(&jobs).await;
}

fn id(text: &str) -> JobId {
    JobId::parse_scoped(text).unwrap()
}

fn due(name: &str) -> Job {
    Job::new(id(name), json!({ "input": name }), SystemClock.now())
}

fn take(most: usize) -> Take {
    Take { most, ..Take::default() }
}

fn names(jobs: &[Job]) -> BTreeSet<&str> {
    jobs.iter().map(|job| job.id.as_str()).collect()
}

fn finish(job: &Job) -> JobChange {
    let run = JobRun {
        session_id: job.next_session(),
        run_id: Some("run-1".parse().unwrap()),
        outcome: Outcome::Success,
        error: None,
        ended_at: SystemClock.now(),
    };
    JobChange::Finish { attempt: job.attempt, run }
}

async fn end(jobs: &dyn JobStore, taken: &[Job]) {
    for job in taken {
        jobs.change(&job.id, finish(job)).await.unwrap().unwrap().unwrap();
    }
}

async fn a_job_is_added_once_and_found(jobs: &dyn JobStore) {
    let job = due("once").with_priority(-3).with_session("s".parse().unwrap());
    assert!(jobs.add(job.clone()).await.unwrap());
    assert!(!jobs.add(due("once")).await.unwrap());
    assert_eq!(jobs.job(&job.id).await.unwrap(), Some(job.clone()));
    assert_eq!(jobs.job(&id("unknown")).await.unwrap(), None);
    assert_eq!(jobs.jobs(&[JobStatus::Waiting]).await.unwrap(), [job]);
    assert_eq!(jobs.jobs(&[JobStatus::Ended]).await.unwrap(), []);
    assert!(jobs.change(&id("unknown"), JobChange::Cancel).await.unwrap().is_none());
    let taken = jobs.take(take(9)).await.unwrap();
    assert_eq!(names(&taken), ["once"].into());
    end(jobs, &taken).await;
}

async fn what_is_due_is_taken_and_finished(jobs: &dyn JobStore) {
    let later = SystemClock.now().after(Duration::from_secs(3600));
    for job in [
        Job::new(id("later"), json!({}), later),
        due("first").with_session("same".parse().unwrap()).with_priority(2),
        due("second").with_session("same".parse().unwrap()),
        due("third").with_priority(1),
        due("fourth"),
    ] {
        assert!(jobs.add(job).await.unwrap());
    }
    assert_eq!(jobs.take(take(0)).await.unwrap(), []);
    let taken = jobs.take(take(2)).await.unwrap();
    assert_eq!(names(&taken), ["first", "third"].into());
    assert!(taken.iter().all(|job| job.status == JobStatus::Active && job.attempt == 1));
    let held: Vec<_> = taken.iter().map(|job| job.id.clone()).collect();
    // The second of the session waits for the first.
    let more = jobs.take(Take { most: 9, per_tenant: None, held: held.clone() }).await.unwrap();
    assert_eq!(names(&more), ["fourth"].into());
    let full = Take { most: 9, per_tenant: Some(3), held: [&held[..], &[id("fourth")]].concat() };
    assert_eq!(jobs.take(full).await.unwrap(), []);
    end(jobs, &taken).await;
    end(jobs, &more).await;
    let first = jobs.job(&id("first")).await.unwrap().unwrap();
    assert_eq!((first.status, first.runs), (JobStatus::Ended, 1));
    assert_eq!(first.last_run.as_ref().unwrap().outcome, Outcome::Success);
    // What has ended can't be finished again.
    let again = jobs.change(&first.id, finish(&first)).await.unwrap();
    assert_eq!(again, Some(Err(JobFault::Over)));
    let second = jobs.take(take(9)).await.unwrap();
    assert_eq!(names(&second), ["second"].into());
    // A job that is given back is due later.
    let postpone = JobChange::Postpone { attempt: 1, until: later, why: "busy".to_owned() };
    let back = jobs.change(&id("second"), postpone).await.unwrap().unwrap().unwrap();
    assert_eq!((back.status, back.due_at), (JobStatus::Waiting, later));
    assert_eq!(jobs.job(&back.id).await.unwrap().unwrap().postponed.as_deref(), Some("busy"));
    assert_eq!(jobs.take(take(9)).await.unwrap(), []);
    for name in ["second", "later"] {
        jobs.change(&id(name), JobChange::Cancel).await.unwrap().unwrap().unwrap();
    }
}

async fn a_job_that_repeats_is_due_again(jobs: &dyn JobStore) {
    let mut job = due("hourly").with_cron("0 * * * *", SystemClock.now()).unwrap();
    job.due_at = SystemClock.now();
    assert!(jobs.add(job).await.unwrap());
    let taken = jobs.take(take(1)).await.unwrap();
    end(jobs, &taken).await;
    let job = jobs.job(&id("hourly")).await.unwrap().unwrap();
    assert_eq!((job.status, job.runs), (JobStatus::Waiting, 1));
    assert!(job.due_at > SystemClock.now() && job.due_at.as_micros() % 3_600_000_000 == 0, "{job:?}");
    assert_eq!(jobs.take(take(1)).await.unwrap(), []);
    jobs.change(&job.id, JobChange::Cancel).await.unwrap().unwrap().unwrap();
}

async fn what_is_cancelled_is_not_run(jobs: &dyn JobStore) {
    for name in ["waits", "works"] {
        assert!(jobs.add(due(name)).await.unwrap());
    }
    let waits = jobs.change(&id("waits"), JobChange::Cancel).await.unwrap().unwrap().unwrap();
    assert_eq!(waits.status, JobStatus::Cancelled);
    let taken = jobs.take(take(9)).await.unwrap();
    assert_eq!(names(&taken), ["works"].into());
    // Its process ends the run.
    let works = jobs.change(&id("works"), JobChange::Cancel).await.unwrap().unwrap().unwrap();
    assert!(works.status == JobStatus::Active && works.is_cancelling);
    end(jobs, &taken).await;
    assert_eq!(jobs.job(&id("works")).await.unwrap().unwrap().status, JobStatus::Cancelled);
    // A run that no process waits for at the moment is cancelled by the next one.
    assert!(jobs.add(due("has-begun")).await.unwrap());
    jobs.take(take(1)).await.unwrap();
    let run = RunId::from_lossy("run-of-has-begun");
    let later = SystemClock.now().after(Duration::from_secs(3600));
    let postpone = JobChange::Postpone { attempt: 1, until: later, why: "busy".to_owned() };
    for change in [JobChange::Begin { attempt: 1, run }, postpone, JobChange::Cancel] {
        jobs.change(&id("has-begun"), change).await.unwrap().unwrap().unwrap();
    }
    let taken = jobs.take(take(9)).await.unwrap();
    assert_eq!(names(&taken), ["has-begun"].into());
    assert!(taken[0].is_cancelling && taken[0].run_id.is_some());
    end(jobs, &taken).await;
    assert_eq!(jobs.job(&id("has-begun")).await.unwrap().unwrap().status, JobStatus::Cancelled);
}

async fn what_was_taken_and_is_not_held_is_taken_again(jobs: &dyn JobStore) {
    assert!(jobs.add(due("lost")).await.unwrap());
    let first = jobs.take(take(1)).await.unwrap();
    let held = Take { most: 1, per_tenant: None, held: vec![id("lost")] };
    assert_eq!(jobs.take(held).await.unwrap(), []);
    let second = jobs.take(take(1)).await.unwrap();
    assert_eq!((second[0].key(), second[0].attempt), (first[0].key(), 2));
    let late = jobs.change(&id("lost"), finish(&first[0])).await.unwrap();
    assert_eq!(late, Some(Err(JobFault::Overtaken)));
    end(jobs, &second).await;
}

async fn what_ends_its_processes_is_not_taken_without_end(jobs: &dyn JobStore) {
    assert!(jobs.add(due("deadly")).await.unwrap());
    for attempt in 1..=MAX_LOSSES {
        let taken = jobs.take(take(1)).await.unwrap();
        assert_eq!((names(&taken), taken[0].attempt), (["deadly"].into(), attempt.into()));
    }
    assert_eq!(jobs.take(take(1)).await.unwrap(), []);
    let job = jobs.job(&id("deadly")).await.unwrap().unwrap();
    assert_eq!(
        (job.status, job.last_run.unwrap().error.unwrap().code.as_str()),
        (JobStatus::Ended, "job_lost")
    );
    // A run that has begun is found by each process that takes the job.
    assert!(jobs.add(due("long")).await.unwrap());
    let taken = jobs.take(take(1)).await.unwrap();
    let begin = JobChange::Begin { attempt: 1, run: "run-1".parse().unwrap() };
    jobs.change(&taken[0].id, begin).await.unwrap().unwrap().unwrap();
    for _ in 0..=MAX_LOSSES {
        let taken = jobs.take(take(1)).await.unwrap();
        assert_eq!(taken[0].run_id, Some("run-1".parse().unwrap()));
    }
    end(jobs, &[jobs.job(&id("long")).await.unwrap().unwrap()]).await;
}

async fn each_is_on_one_page(acme: &dyn JobStore, whole: &dyn JobStore) {
    let pages = async |jobs: &dyn JobStore, part: Part| {
        let mut listing = JobListing::new(part, [JobStatus::Waiting], 2);
        let mut ids = Vec::new();
        loop {
            let page = jobs.list(&listing).await.unwrap();
            ids.extend(page.iter().map(|job| job.id.to_string()));
            match page.last() {
                Some(last) => listing.after = Some(last.place()),
                None => return ids,
            }
        }
    };
    assert_eq!(pages(acme, Part::Of(None)).await, ["1", "2", "3"]);
    assert_eq!(pages(whole, Part::Of(Some("acme".parse().unwrap()))).await, ["acme/1", "acme/2", "acme/3"]);
    assert_eq!(pages(whole, Part::Of(None)).await, [""; 0]);
    assert_eq!(pages(whole, Part::All).await, ["acme/1", "acme/2", "acme/3", "other/1"]);
    assert_eq!(acme.list(&JobListing::new(Part::All, [JobStatus::Ended], 9)).await.unwrap(), []);
}

async fn tenants_take_turns_and_see_their_own(journal: &Arc<dyn Journal>) {
    let whole = journal.jobs().unwrap();
    let part = |tenant: &str| Scoped::new(journal.clone(), tenant.parse().unwrap()).jobs().unwrap();
    let (acme, other) = (part("acme"), part("other"));
    for name in ["1", "2", "3"] {
        assert!(acme.add(due(name).with_session("s".parse().unwrap())).await.unwrap());
    }
    let before = SystemClock.now();
    assert!(other.add(due("1").with_session("s".parse().unwrap())).await.unwrap());
    assert!(SystemClock.now() >= before);
    assert_eq!(names(&acme.jobs(&[JobStatus::Waiting]).await.unwrap()), ["1", "2", "3"].into());
    assert_eq!(names(&other.jobs(&[]).await.unwrap()), ["1"].into());
    let counts = (acme.count(None).await.unwrap(), other.count(None).await.unwrap());
    assert_eq!((counts, whole.count(None).await.unwrap()), ((3, 1), 0));
    each_is_on_one_page(&*acme, &*whole).await;
    assert_eq!(other.job(&id("2")).await.unwrap(), None);
    assert!(other.change(&id("2"), JobChange::Cancel).await.unwrap().is_none());
    assert_eq!(acme.take(take(9)).await.unwrap(), [], "jobs are taken from the whole store");
    let taken = whole.take(take(2)).await.unwrap();
    assert_eq!(names(&taken), ["acme/1", "other/1"].into());
    assert!(taken.iter().all(|job| job.session_id.as_ref().unwrap().as_str().ends_with("/s")));
    end(&*whole, &taken).await;
    for name in ["2", "3"] {
        acme.change(&id(name), JobChange::Cancel).await.unwrap().unwrap().unwrap();
    }
}

async fn each_job_is_taken_by_one_of_many(jobs: &Arc<dyn JobStore>) {
    let all: Vec<_> = (0..40).map(|number| format!("many-{number}")).collect();
    for name in &all {
        assert!(jobs.add(due(name)).await.unwrap());
    }
    // Each holds all, so that none counts as lost.
    let held: Vec<_> = all.iter().map(|name| id(name)).collect();
    let takers = (0..8).map(|_| async {
        let mut own = Vec::new();
        loop {
            let taken = jobs.take(Take { most: 3, per_tenant: None, held: held.clone() }).await.unwrap();
            if taken.is_empty() {
                return own;
            }
            own.extend(taken);
        }
    });
    let taken: Vec<_> = join_all(takers).await.concat();
    assert_eq!(taken.len(), all.len());
    assert_eq!(names(&taken), all.iter().map(String::as_str).collect());
    end(&**jobs, &taken).await;
}
