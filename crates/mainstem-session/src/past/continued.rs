//! Finds the background tasks of an earlier process that go on elsewhere, so that this one
//! continues them.

use mainstem_event::fold::RecordedTurn;
use mainstem_journal::{Journal, JournalError};
use mainstem_message::{AgentKey, ReplyId, SessionId, TaskId, Usage};
use mainstem_policy::Prices;
use mainstem_task::{TaskRecord, TaskSet};

use super::{PAGE, Past};
use crate::RunAgents;

/// A task that this process continues, and the turn of its child so far.
pub(crate) struct Continued {
    pub(crate) task: TaskRecord,
    pub(crate) turn: RecordedTurn,
}

impl Past {
    /// Takes out the turns that can be continued, with all below them: [`close`](Self::close) ends
    /// the others.
    pub(crate) async fn take_continued(
        &mut self,
        journal: &dyn Journal,
        session: &SessionId,
        agents: &RunAgents,
        tasks: &TaskSet,
        prices: &Prices,
    ) -> Vec<Continued> {
        let mut continued = Vec::new();
        for (reply, task, child) in self.continuable(agents) {
            let found = tasks.find_resumable(&task).await.unwrap_or_else(|error| {
                tracing::warn!(%task, %error, "a task of an earlier process can't be read");
                None
            });
            let Some(task) = found.filter(|task| task.agent_key == child) else { continue };
            match self.recorded(journal, session, &reply, prices).await {
                Ok(Some(turn)) => {
                    let all = std::iter::once(&turn.own).chain(&turn.below);
                    all.for_each(|one| _ = self.open.remove(&one.reply_id));
                    continued.push(Continued { task, turn });
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%session, %error, "a turn can't be read to continue it"),
            }
        }
        continued
    }

    /// Returns the open turns of background tasks that agents of this process can continue: the
    /// reply, the task and the child. A turn that has its answer only lacks its end.
    fn continuable(&self, agents: &RunAgents) -> Vec<(ReplyId, TaskId, AgentKey)> {
        let open = self.open.iter().filter(|(_, open)| open.answered.is_none());
        let tasks = open.filter_map(|(reply, open)| {
            let source = open.origin.source.as_ref()?;
            Some((reply.clone(), source.task_id.clone()?, source.agent_key.clone()))
        });
        tasks.filter(|(.., child)| self.children.can_continue(agents.shared(), child)).collect()
    }

    /// Reads a turn again, from its first event on.
    async fn recorded(
        &self,
        journal: &dyn Journal,
        session: &SessionId,
        reply: &ReplyId,
        prices: &Prices,
    ) -> Result<Option<RecordedTurn>, JournalError> {
        let Some(mut next) = self.open.get(reply).map(|open| open.seq) else { return Ok(None) };
        let cost = |model: &str, usage: &Usage| prices.cost(model, usage).map(|cost| cost.micros());
        let mut turn: Option<RecordedTurn> = None;
        while next <= self.seq {
            let page = journal.read(session, next, PAGE).await?;
            let Some(last) = page.last() else { break };
            next = last.seq + 1;
            for event in page.iter().take_while(|event| event.seq <= self.seq) {
                match &mut turn {
                    Some(turn) => turn.apply(event, cost),
                    None => turn = RecordedTurn::begun_by(event),
                }
            }
        }
        Ok(turn)
    }
}
