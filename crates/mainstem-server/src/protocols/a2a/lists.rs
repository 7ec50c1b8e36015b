//! Lists of tasks, in pages.

use futures_util::StreamExt;
use mainstem::{
    journal::{Listing, Part},
    message::{RunId, SessionId},
    session::SessionCopy,
};
use mainstem_a2a::{
    TaskFold,
    sdk::{ListTasksRequest, ListTasksResponse, Task},
};

use super::{
    Call,
    refusal::Refusal,
    rpc::Answer,
    tasks::{fold, history},
};
use crate::problem::Problem;

/// How many sessions a list has, the latest first; one with a filter reads each of its sessions.
const MAX_SESSIONS: usize = 1000;
const MAX_READ: usize = 100;

/// The size of a page, by default and at most.
const PAGE: i32 = 50;
const MAX_PAGE: i32 = 100;

/// `ListTasks`: the latest session first, and in it the latest task. Without a filter, only the
/// sessions of the page are read.
pub(super) async fn list(call: &Call, request: ListTasksRequest) -> Result<Answer, Refusal> {
    let size = request.page_size.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&size) {
        return Err(Refusal::invalid(format!("`pageSize` must be from 1 to {MAX_PAGE}")));
    }
    let history = history(request.history_length)?;
    let with_artifacts = request.include_artifacts == Some(true);
    let after = request.page_token.as_deref().filter(|token| !token.is_empty());
    let mut listed = Listed::new(size, after)?;
    let is_filtered = request.status.is_some() || request.status_timestamp_after.is_some();
    for Context { id, tasks } in contexts(call, &request, is_filtered).await? {
        if let Some(tasks) = tasks.filter(|_| !is_filtered && !listed.wants(&id)) {
            listed.skip(tasks);
            continue;
        }
        for fold in folds_of(call, &id).await?.into_iter().filter(|fold| matches(&request, fold)) {
            listed.add(&id, || {
                let task = fold.task(history);
                Task { artifacts: task.artifacts.filter(|_| with_artifacts), ..task }
            });
        }
    }
    listed.into_answer()
}

/// A page of a list of tasks, as it is filled.
struct Listed<'a> {
    size: usize,
    page: Vec<Task>,
    /// The task before the page, until it was found. Its session comes first.
    after: Option<(&'a str, &'a str)>,
    total: usize,
    has_more: bool,
}

impl<'a> Listed<'a> {
    fn new(size: i32, after: Option<&'a str>) -> Result<Self, Refusal> {
        let invalid = |token| Refusal::invalid(format!("{token:?} is not the token of a page"));
        let after = after.map(|token| token.split_once('/').ok_or_else(|| invalid(token))).transpose()?;
        let size = usize::try_from(size).unwrap_or(1);
        Ok(Self { size, page: Vec::new(), after, total: 0, has_more: false })
    }

    fn is_full(&self) -> bool {
        self.page.len() == self.size
    }

    /// Returns `true` if the page may have a task of this session.
    fn wants(&self, session: &SessionId) -> bool {
        match self.after {
            Some((of, _)) => *session == *of,
            None => !self.is_full(),
        }
    }

    /// Counts the tasks of a session that the page has none of.
    fn skip(&mut self, tasks: usize) {
        self.total += tasks;
        self.has_more |= self.after.is_none() && tasks > 0;
    }

    fn add(&mut self, session: &SessionId, task: impl FnOnce() -> Task) {
        self.total += 1;
        match self.after {
            Some((of, last)) => {
                let task = (*session == *of).then(task);
                if task.is_some_and(|task| task.id == last) {
                    self.after = None;
                }
            }
            None if self.is_full() => self.has_more = true,
            None => self.page.push(task()),
        }
    }

    fn into_answer(self) -> Result<Answer, Refusal> {
        let Self { page, after, total, has_more, .. } = self;
        if let Some((session, task)) = after {
            return Err(Refusal::invalid(format!("\"{session}/{task}\" is not the token of a page")));
        }
        let token = |last: &Task| format!("{}/{}", last.context_id, last.id);
        let next_page_token = page.last().filter(|_| has_more).map(token).unwrap_or_default();
        let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let (page_size, total_size) = (count(page.len()), count(total));
        Ok(Answer::json(ListTasksResponse { tasks: page, next_page_token, page_size, total_size }))
    }
}

/// Returns the tasks of a session, the latest first; none if it is unknown, or deleted meanwhile. A
/// session that is not open is read and not opened, unless its process has ended within a run.
async fn folds_of(call: &Call, id: &SessionId) -> Result<Vec<TaskFold>, Refusal> {
    let sessions = call.caller.harness.sessions();
    if sessions.get(id).is_none() {
        let copy = sessions.copy(id).await.map_err(|error| call.app.unreadable(&error))?;
        let Some(copy) = copy else { return Ok(Vec::new()) };
        if !copy.is_abandoned().await {
            return Ok(folds_recorded(&copy).await);
        }
    }
    match call.app.session(&call.caller, id.as_str()).await {
        Ok(session) => {
            let mut folds = Vec::new();
            for run in session.find_runs().iter().rev() {
                folds.push(fold(run, None).await.0);
            }
            Ok(folds)
        }
        Err(problem) if problem.is_not_found() => Ok(Vec::new()),
        Err(problem) => Err(problem.into()),
    }
}

/// Returns the tasks of a session that is not open here, as far as they are recorded.
async fn folds_recorded(copy: &SessionCopy) -> Vec<TaskFold> {
    let log = copy.log();
    let (mut cursor, last) = (log.committed_from(1), log.last_seq());
    let mut folds = Vec::<(RunId, TaskFold)>::new();
    while cursor.next_seq() <= last {
        let Some(event) = cursor.next().await else { break };
        if event.seq.is_multiple_of(1024) {
            tokio::task::yield_now().await;
        }
        let Some(run) = event.run_id() else { continue };
        let known = folds.iter().rposition(|(known, _)| known == run);
        let place = known.unwrap_or_else(|| {
            folds.push((run.clone(), TaskFold::new(run.as_str(), log.session_id().as_str())));
            folds.len() - 1
        });
        folds[place].1.apply(&event);
    }
    folds.into_iter().rev().map(|(_, fold)| fold).collect()
}

fn matches(request: &ListTasksRequest, fold: &TaskFold) -> bool {
    let status = fold.status();
    let is_of_state = request.status.as_ref().is_none_or(|state| status.state == *state);
    is_of_state && request.status_timestamp_after.is_none_or(|after| status.timestamp >= Some(after))
}

/// A session whose tasks are listed.
struct Context {
    id: SessionId,
    /// How many tasks it has, if that is known without reading it.
    tasks: Option<usize>,
}

async fn contexts(
    call: &Call,
    request: &ListTasksRequest,
    is_filtered: bool,
) -> Result<Vec<Context>, Refusal> {
    if let Some(id) = request.context_id.as_deref().filter(|id| !id.is_empty()) {
        return Ok(vec![Context { id: id.parse::<SessionId>().map_err(Problem::from)?, tasks: None }]);
    }
    let most = if is_filtered { MAX_READ } else { MAX_SESSIONS };
    let page = call.caller.harness.sessions().list(&Listing::new(Part::Of(None), most)).await;
    let page = page.map_err(|error| call.app.unreadable(&error))?;
    let contexts = page.items.into_iter().map(|view| {
        let begun = usize::try_from(view.runs).unwrap_or(usize::MAX);
        Context { tasks: Some(begun.saturating_add(view.queued_runs.len())), id: view.id }
    });
    Ok(contexts.collect())
}
