//! Push notifications: a task is posted to its client's addresses whenever its state changes.
//!
//! Configurations live as long as the task, in this process: a task does not outlive it either.

mod webhook;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::StreamExt;
use mainstem::{
    message::RunId,
    policy::{Share, Shares},
    session::FoundRun,
};
use mainstem_a2a::sdk::{
    A2AError, ListTaskPushNotificationConfigsResponse, StreamResponse, TaskPushNotificationConfig, TaskState,
    error_code, new_task_id,
};
use mainstem_outbound::Reach;
use serde_json::json;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::webhook::{Poster, Webhook};
use super::{Call, refusal::Refusal, rpc::Answer, tasks};
use crate::{app::App, problem::Problem};
use mainstem_api::Code;

/// How many tasks have configurations at once, in all.
pub(crate) const MAX_TASKS: usize = 128;

/// How many configurations a task has.
pub(crate) const MAX_CONFIGS: usize = 8;

/// The configurations of all tasks.
pub(crate) struct Pushes {
    poster: Poster,
    shares: Arc<Shares>,
    tasks: Mutex<HashMap<RunId, Configured>>,
}

/// The configurations of a task.
struct Configured {
    hooks: Vec<Hook>,
    share: Arc<Share>,
}

/// A configuration. Dropping it ends its notifications.
struct Hook {
    webhook: Arc<Webhook>,
    _ends: DropGuard,
}

impl Pushes {
    /// Creates it for this many tenants; notifications go to addresses within the reach.
    pub(crate) fn new(reach: Reach, tenants: usize) -> Self {
        Self { poster: Poster::new(reach), shares: Shares::new(MAX_TASKS, tenants), tasks: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Configured>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, run: &RunId) -> Vec<Arc<Webhook>> {
        let webhooks = |task: &Configured| task.hooks.iter().map(|hook| hook.webhook.clone()).collect();
        self.lock().get(run).map(webhooks).unwrap_or_default()
    }

    /// Removes a configuration, and a task with its last one.
    fn remove(&self, run: &RunId, is_removed: impl Fn(&Arc<Webhook>) -> bool) {
        let mut tasks = self.lock();
        let Some(task) = tasks.get_mut(run) else { return };
        task.hooks.retain(|hook| !is_removed(&hook.webhook));
        if task.hooks.is_empty() {
            tasks.remove(run);
        }
    }
}

/// A configuration that can be added to a task.
pub(super) struct Checked {
    hook: Webhook,
    share: Share,
}

/// Checks a configuration, before its task begins. Without an id it gets this one.
pub(super) fn check(call: &Call, config: TaskPushNotificationConfig, id: &str) -> Result<Checked, Refusal> {
    let id = config.id.clone().filter(|id| !id.is_empty()).unwrap_or_else(|| id.to_owned());
    let config = TaskPushNotificationConfig { id: Some(id), ..config };
    let pushes = &call.app.pushes;
    let hook = Webhook::new(config, &pushes.poster).map_err(Refusal::invalid)?;
    let share = pushes.shares.take(&call.caller.tenant).ok_or_else(|| {
        let detail = format!("your share of the {MAX_TASKS} tasks with push notifications is in use");
        Problem::new(Code::TooManyReaders, detail).retry_after(5)
    })?;
    Ok(Checked { hook, share })
}

/// Refuses a configuration for which the task has no place.
pub(super) fn has_room(call: &Call, run: &FoundRun, checked: &Checked) -> Result<(), Refusal> {
    let hooks = call.app.pushes.of(run.id());
    check_room(hooks.iter().filter(|hook| hook.id() != checked.hook.id()).count())
}

fn check_room(others: usize) -> Result<(), Refusal> {
    if others < MAX_CONFIGS {
        return Ok(());
    }
    Err(Refusal::invalid(format!("a task has at most {MAX_CONFIGS} push notification configurations")))
}

/// Adds a configuration to a task, in the place of an earlier one with the same id. The first one
/// of a task is never refused.
pub(super) fn add(call: &Call, run: &FoundRun, checked: Checked) -> Result<(), Refusal> {
    let (webhook, new_share) = (Arc::new(checked.hook), Arc::new(checked.share));
    let is_deleted = CancellationToken::new();
    let mut tasks = call.app.pushes.lock();
    let new = || Configured { hooks: Vec::new(), share: new_share };
    let Configured { hooks, share } = tasks.entry(run.id().clone()).or_insert_with(new);
    let others = hooks.iter().filter(|hook| hook.webhook.id() != webhook.id()).count();
    check_room(others)?;
    hooks.retain(|hook| hook.webhook.id() != webhook.id());
    hooks.push(Hook { webhook: webhook.clone(), _ends: is_deleted.clone().drop_guard() });
    let following = Following { app: call.app.clone(), run: run.clone(), webhook, _share: share.clone() };
    drop(tasks);
    let notify = async move { _ = is_deleted.run_until_cancelled_owned(following.notify()).await };
    run.session().task_set().drive(notify);
    Ok(())
}

/// A task whose changes are posted to one address, so that a slow address does not delay others.
struct Following {
    app: Arc<App>,
    run: FoundRun,
    webhook: Arc<Webhook>,
    _share: Arc<Share>,
}

impl Following {
    /// Posts changes until the task is over.
    async fn notify(self) {
        let (mut fold, mut cursor) = tasks::fold(&self.run, None).await;
        let mut shown = (TaskState::Unspecified, 0);
        loop {
            let state = (fold.status().state.clone(), fold.pending().len());
            if state != shown {
                shown = state;
                let update = json!(StreamResponse::Task(fold.task(None)));
                self.webhook.post(&update).await;
            }
            if fold.is_over() {
                return;
            }
            let Some(event) = cursor.next().await else { return };
            fold.apply(&event);
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.app.pushes.remove(self.run.id(), |webhook| Arc::ptr_eq(webhook, &self.webhook));
    }
}

/// `CreateTaskPushNotificationConfig`.
pub(super) async fn create(call: &Call, config: TaskPushNotificationConfig) -> Result<Answer, Refusal> {
    let run = call.app.run(&call.caller, &config.task_id).await?;
    let checked = check(call, config, &new_task_id())?;
    if run.is_over() || run.handle().is_none() {
        return Err(Refusal::unsupported(format!("task {:?} is over, and changes no more", run.id())));
    }
    let shown = checked.hook.shown(run.id().as_str());
    add(call, &run, checked)?;
    Ok(Answer::json(shown))
}

/// `GetTaskPushNotificationConfig`.
pub(super) async fn get(call: &Call, task: &str, id: &str) -> Result<Answer, Refusal> {
    let run = call.app.run(&call.caller, task).await?;
    let hook = call.app.pushes.of(run.id()).into_iter().find(|hook| hook.id() == id);
    let unknown =
        || A2AError::new(error_code::TASK_NOT_FOUND, format!("task {task:?} has no configuration {id:?}"));
    Ok(Answer::json(hook.ok_or_else(unknown)?.shown(task)))
}

/// `ListTaskPushNotificationConfigs`.
pub(super) async fn list(call: &Call, task: &str) -> Result<Answer, Refusal> {
    let run = call.app.run(&call.caller, task).await?;
    let configs = call.app.pushes.of(run.id()).iter().map(|hook| hook.shown(task)).collect();
    Ok(Answer::json(ListTaskPushNotificationConfigsResponse { configs, next_page_token: None }))
}

/// `DeleteTaskPushNotificationConfig`.
pub(super) async fn delete(call: &Call, task: &str, id: &str) -> Result<Answer, Refusal> {
    let run = call.app.run(&call.caller, task).await?;
    call.app.pushes.remove(run.id(), |webhook| webhook.id() == id);
    Ok(Answer::Json(json!({})))
}
