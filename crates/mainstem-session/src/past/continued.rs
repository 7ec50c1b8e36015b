//! Finds the background tasks of an earlier process that go on elsewhere, so that this one
//! continues them.

use mainstem_event::fold::RecordedTurn;
use mainstem_journal::{Journal, JournalError};
use mainstem_message::{AgentKey, ReplyId, SessionId, Usage};
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
        let open = self.continuable(agents);
        if open.is_empty() {
            return continued;
        }
        let resumable = tasks.find_resumable(session).await.unwrap_or_else(|error| {
            tracing::warn!(%session, %error, "tasks of an earlier process can't be read");
            Vec::new()
        });
        for task in resumable {
            let Some((reply, _)) = open.iter().find(|(_, child)| *child == task.agent_key) else { continue };
            match self.recorded(journal, session, reply, prices).await {
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

    /// Returns the open turns of children that agents of this process can continue: the reply and
    /// the child. A turn that has its answer only lacks its end.
    fn continuable(&self, agents: &RunAgents) -> Vec<(ReplyId, AgentKey)> {
        let open = self.open.iter().filter(|(_, open)| open.answered.is_none());
        let turns = open.filter_map(|(reply, open)| {
            Some((reply.clone(), open.origin.source.as_ref()?.agent_key.clone()))
        });
        turns.filter(|(_, child)| self.children.can_continue(agents.shared(), child)).collect()
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
                    None if event.reply_id() == Some(reply) => turn = RecordedTurn::begun_by(event),
                    None => {}
                }
            }
        }
        Ok(turn)
    }
}
