//! Runs the turns of children, and what the fleet offers to what runs them.

use std::{fmt, pin::Pin, sync::Arc};

use mainstem_event::{Decision, fold::RecordedTurn};
use mainstem_message::{Message, ToolCall};
use mainstem_policy::{PlanMode, Rules};
use mainstem_react::{Agent, RunContext, RunOutcome};
use mainstem_spec::AgentSpec;
use mainstem_task::TaskSet;
use mainstem_tool::ToolOutput;

use crate::{fleet::Fleet, member::Member};

/// The rule of a request for approval from elsewhere, whose own rules are unknown here.
const ELSEWHERE: &str = "of its server";

/// A running turn of a child. It is owned, so that it can move from the tool call that began it to
/// a background task. Dropping it stops the child.
pub type RunningTurn = Pin<Box<dyn Future<Output = RunOutcome> + Send>>;

/// Runs the turns of a child: an agent of this process, or a proxy of a remote agent.
///
/// The fleet starts, waits for, promotes and records children on the strength of what a runner
/// guarantees:
///
/// * The turn emits into its context, from one `AGENT_START` to one `AGENT_END` with the outcome
///   that the future returns. The roster's conversations and the budgets' usage are folds of these
///   events.
/// * Errors are in the outcome; the future does not panic.
/// * It stops soon after its context is cancelled, and closes what is open. Dropping it stops the
///   child as well.
/// * It awaits `settle` after each delta, for backpressure.
/// * It polls `watchdog` until the turn has ended, then drops it.
pub trait Runner: fmt::Debug + Send + Sync {
    /// Starts a turn when the returned future is first polled.
    fn run_turn(&self, input: TurnInput) -> RunningTurn;

    /// Returns `true` if a running turn reads messages. Otherwise a message is the next turn.
    fn reads_messages(&self) -> bool {
        false
    }

    /// Returns what continues a turn after the process that began it has ended; `None` if the turn
    /// ends with its process.
    fn continues(&self) -> Option<&dyn ContinuesTurns> {
        None
    }
}

/// A [`Runner`] whose turns go on elsewhere when this process ends.
pub trait ContinuesTurns: Send + Sync {
    /// Continues a turn that another process has begun, when the returned future is first polled.
    ///
    /// The context of the input is that of a
    /// [recorded child](mainstem_react::RunContext::recorded_child): the turn is emitted again from
    /// its beginning, and what the record has is not recorded twice. Otherwise the guarantees are
    /// those of [`run_turn`](Runner::run_turn).
    fn continue_turn(&self, input: TurnInput, recorded: RecordedTurn) -> RunningTurn;
}

/// The input of a turn.
#[non_exhaustive]
pub struct TurnInput {
    /// The context of the invocation.
    pub cx: RunContext,
    /// The messages of earlier turns.
    pub history: Vec<Arc<Message>>,
    /// What the agent is asked to do, or told next.
    pub task: String,
    /// Polled beside the turn; cancels it when it has been silent for too long.
    pub watchdog: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl fmt::Debug for TurnInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnInput").field("cx", &self.cx).finish_non_exhaustive()
    }
}

/// What a fleet offers to the runner of one of its agents. Without a fleet each has its default.
impl Fleet {
    /// Returns how many levels of agents may be below the agent of a context.
    pub fn levels_below(cx: &RunContext) -> u16 {
        Member::of(cx).map_or(0, |member| member.max_depth().saturating_sub(cx.depth()))
    }

    /// Returns the rules that hold for a context's agent and all below it, outermost first, without
    /// where they were written.
    pub fn rules(cx: &RunContext) -> Rules {
        let Ok(member) = Member::of(cx) else { return Rules::new() };
        member.rules().fold(Rules::new(), |all, rules| all.narrowed_by(rules)).without_origins()
    }

    /// Returns `true` if a person answers requests for approval.
    pub fn is_attended(cx: &RunContext) -> bool {
        Member::of(cx).is_ok_and(|member| member.options.is_attended)
    }

    /// Returns `true` if agents may only read.
    pub fn is_planning(cx: &RunContext) -> bool {
        Self::of(cx).is_some_and(|fleet| fleet.plan_mode() == PlanMode::On)
    }

    /// Returns where work is driven that outlives its caller.
    pub fn task_set(cx: &RunContext) -> Option<&TaskSet> {
        Member::of(cx).ok().map(|member| &member.fleet.tasks)
    }

    /// Notes an event of an agent below a context's agent, which runs elsewhere as that one does:
    /// neither is silent.
    pub fn heard(cx: &RunContext) {
        if let Ok(member) = Member::of(cx) {
            member.waits.hear();
        }
    }

    /// Asks a person to approve a call of a context's agent, in an event of that agent, unless a
    /// rule denies it or it is decided elsewhere first. Only the caller waits; dropping the future
    /// withdraws the request.
    pub async fn ask(
        cx: &RunContext,
        call: ToolCall,
        elsewhere: impl Future<Output = Decision> + Send,
    ) -> Decision {
        let member = match Member::of(cx) {
            Ok(member) => member,
            Err(error) => return Decision::Deny(error.to_string()),
        };
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
        let denied = |arguments| member.denial(&call, arguments).map(Decision::Deny);
        if let Some(denied) = denied(&arguments) {
            return denied;
        }
        match member.ask_unless(cx, call.clone(), Some(ELSEWHERE.into()), elsewhere).await {
            Decision::AllowWith(edited) => denied(&edited).unwrap_or(Decision::AllowWith(edited)),
            decision => decision,
        }
    }

    /// Has a call of an agent that runs elsewhere run by the caller of the session, if the agent's
    /// declaration names the tool in `tools`, unless it is run elsewhere first; `None` if the agent
    /// is stopped first. Rules apply as for a tool that is declared here.
    pub async fn run_externally(
        cx: &RunContext,
        call: ToolCall,
        elsewhere: impl Future<Output = ToolOutput> + Send,
    ) -> Option<ToolOutput> {
        let failed = |why: String| Some(ToolOutput::failed(why));
        let member = match Member::of(cx) {
            Ok(member) => member,
            Err(error) => return failed(error.to_string()),
        };
        let names = |spec: &AgentSpec| spec.tools.iter().flatten().any(|tool| *tool == call.name);
        if !member.lineage.as_ref().is_some_and(|lineage| names(&lineage.entry.spec)) {
            return failed(format!(
                "{} is not among the tools that this agent's caller runs for it",
                call.name
            ));
        }
        let mut elsewhere = std::pin::pin!(elsewhere);
        let passed = tokio::select! {
            biased;
            passed = member.pass(cx, call) => passed,
            output = &mut elsewhere => return Some(output),
        };
        match passed {
            Ok(call) => member.run_externally(cx, call, elsewhere).await,
            Err(reason) => failed(reason),
        }
    }
}

impl Runner for Agent {
    fn run_turn(&self, input: TurnInput) -> RunningTurn {
        // What was sent into an earlier turn comes before what this one is about.
        let inbox = Member::of(&input.cx).map(|member| member.fleet.roster.inbox(input.cx.agent_key()));
        let mut message = inbox.map(|inbox| inbox.take()).unwrap_or_default();
        message.push(Arc::new(Message::user(input.task)));
        Box::pin(self.run_beside(input.cx, input.history, message, input.watchdog))
    }

    fn reads_messages(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
