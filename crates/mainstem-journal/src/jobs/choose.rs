//! Which of the jobs that are due begin. Pure.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use mainstem_event::Timestamp;
use mainstem_message::{JobId, SessionId};

use super::Job;

/// What decides whether a job begins.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a store reads each part")]
pub struct Candidate {
    /// The job.
    pub id: JobId,
    /// Its session, if it names one.
    pub session: Option<SessionId>,
    /// Its priority.
    pub priority: i16,
    /// When it is due.
    pub due_at: Timestamp,
}

impl From<&Job> for Candidate {
    fn from(job: &Job) -> Self {
        let Job { id, session_id, priority, due_at, .. } = job.clone();
        Self { id, session: session_id, priority, due_at }
    }
}

/// How many jobs a process takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a request is built with a literal")]
pub struct Take {
    /// At most so many.
    pub most: usize,
    /// How many of a tenant are active at once, in all processes; `None` for no limit.
    pub per_tenant: Option<usize>,
    /// Those that this process has. Others that it has taken are lost, because an answer to it was:
    /// they can be taken again.
    pub held: Vec<JobId>,
}

/// Chooses among the jobs that are due, while others are active; for implementations of
/// [`JobStore::take`](super::JobStore::take).
///
/// * A tenant has at most [`per_tenant`](Take::per_tenant) active jobs.
/// * The tenant with the fewest active jobs is next; among several, the one whose job is due first.
/// * Of a tenant's jobs the one with the highest priority is next, then the one that is due first.
/// * The jobs of a session begin one after the other.
pub fn choose(due: &[Candidate], active: &[Candidate], take: &Take) -> Vec<JobId> {
    let tenant = |job: &Candidate| job.id.tenant().map(str::to_owned);
    let mut counts: BTreeMap<Option<String>, usize> = BTreeMap::new();
    active.iter().for_each(|job| *counts.entry(tenant(job)).or_default() += 1);
    let mut sessions: BTreeSet<_> = active.iter().filter_map(|job| job.session.clone()).collect();
    let mut waiting: Vec<&Candidate> = due.iter().collect();
    waiting.sort_by_key(|job| (Reverse(job.priority), job.due_at, job.id.clone()));
    let mut queues: BTreeMap<Option<String>, Vec<&Candidate>> = BTreeMap::new();
    waiting.into_iter().for_each(|job| queues.entry(tenant(job)).or_default().push(job));
    let mut chosen = Vec::new();
    while chosen.len() < take.most {
        for queue in queues.values_mut() {
            queue.retain(|job| job.session.as_ref().is_none_or(|session| !sessions.contains(session)));
        }
        let count = |tenant: &Option<String>| counts.get(tenant).copied().unwrap_or(0);
        let has_room = |tenant: &Option<String>| take.per_tenant.is_none_or(|most| count(tenant) < most);
        let firsts = queues.iter().filter_map(|(tenant, queue)| Some((tenant, *queue.first()?)));
        let next = firsts.filter(|(tenant, _)| has_room(tenant));
        let Some((tenant, job)) = next.min_by_key(|(tenant, job)| (count(tenant), job.due_at)) else { break };
        let tenant = tenant.clone();
        chosen.push(job.id.clone());
        sessions.extend(job.session.clone());
        if let Some(queue) = queues.get_mut(&tenant) {
            queue.remove(0);
        }
        *counts.entry(tenant).or_default() += 1;
    }
    chosen
}

#[cfg(test)]
mod tests {
    //! Fairness, priorities, limits and sessions.

    use super::*;

    /// `tenant/id`, with `@session`, `!priority` and `+due` behind it.
    fn job(text: &str) -> Candidate {
        let rest = |mark: char| {
            let rest = text.split_once(mark)?.1;
            Some(rest.split(['@', '!', '+']).next().unwrap_or_default().to_owned())
        };
        let id = JobId::parse_scoped(text.split(['@', '!', '+']).next().unwrap()).unwrap();
        let number = |mark| rest(mark).map_or(0, |text| text.parse::<i16>().unwrap());
        Candidate {
            id,
            session: rest('@').map(|session| session.parse().unwrap()),
            priority: number('!'),
            due_at: Timestamp::from_micros(number('+').unsigned_abs().into()),
        }
    }

    #[test]
    fn who_is_next() {
        #[track_caller]
        fn check(due: &[&str], active: &[&str], most: usize, per_tenant: Option<usize>, expected: &[&str]) {
            let jobs = |texts: &[&str]| texts.iter().map(|text| job(text)).collect::<Vec<_>>();
            let take = Take { most, per_tenant, held: Vec::new() };
            let chosen = choose(&jobs(due), &jobs(active), &take);
            assert_eq!(chosen.iter().map(|id| id.as_str()).collect::<Vec<_>>(), expected);
        }
        check(&[], &[], 9, None, &[]);
        check(&["a", "b"], &[], 0, None, &[]);
        check(&["a+2", "b+1"], &[], 9, None, &["b", "a"]);
        check(&["a+1", "b!5+2"], &[], 9, None, &["b", "a"]);
        check(&["a!-1+1", "b+2"], &[], 1, None, &["b"]);
        // In turns, whatever one tenant has waiting.
        check(&["x/1+1", "x/2+2", "x/3+3", "y/1+9"], &[], 3, None, &["x/1", "y/1", "x/2"]);
        // A priority holds among the jobs of a tenant.
        check(&["x/1!9+2", "x/2!9+3", "y/1+1"], &[], 2, None, &["y/1", "x/1"]);
        check(&["x/1", "y/1+5"], &["x/0"], 1, None, &["y/1"]);
        check(&["x/1", "x/2", "y/1"], &["x/0"], 9, Some(1), &["y/1"]);
        check(&["x/1", "x/2"], &[], 9, Some(1), &["x/1"]);
        check(&["x/1"], &[], 9, Some(0), &[]);
        // One at a time in a session.
        check(&["a@s+1", "b@s+2", "c@t+3"], &[], 9, None, &["a", "c"]);
        check(&["a@s"], &["z@s"], 9, None, &[]);
        check(&["a@s+1", "b@s!1+2"], &[], 9, None, &["b"]);
    }
}
