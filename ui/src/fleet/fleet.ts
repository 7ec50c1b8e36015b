// The state of a fleet after some number of events: a port of `FleetState` in `mainstem-event`.
// States are never changed, so that each of them can be retained as a checkpoint.
import type { AgentState, FleetState, Usage } from "../api";
import { keyOf, ROOT, type AgentEvent, type Key, type Of } from "./event";

/** How many characters of an agent's text are retained, and the bytes at which they are cut. */
const LAST_LINE = 240;
const LAST_LINE_BYTES = 4 * LAST_LINE;

export const NO_USAGE: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
};

/** The state before the first event. */
export const NO_FLEET: FleetState = {
  seq: 0,
  at: "1970-01-01T00:00:00.000000Z",
  agents: [],
  tasks: {},
  confirmations: {},
  usage: NO_USAGE,
  missed: 0,
};

export const agentKey = (agent: AgentState): Key => agent.source?.agentKey ?? ROOT;

export const totalTokens = (usage: Usage): number => (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0);

/**
 * Where each agent is in the list of a session, which only grows: so all states share the index.
 */
export type Places = Map<Key, number>;

export function indexed(agents: readonly AgentState[]): Places {
  return new Map(agents.map((agent, place) => [agentKey(agent), place]));
}

/** Applies the next event; one that was applied before changes nothing. */
export function apply(fleet: FleetState, event: AgentEvent, places: Places): FleetState {
  if (event.seq <= fleet.seq) return fleet;
  const next = { ...fleet, ...sessionPart(fleet, event), seq: event.seq, at: event.createdAt };
  next.sessionId ??= event.sessionId;
  return event.replyId === undefined ? next : withAgent(next, event, places);
}

/** What an event changes beside its agent. */
function sessionPart(fleet: FleetState, event: AgentEvent): Partial<FleetState> {
  switch (event.type) {
    case "GAP":
      return { missed: fleet.missed + event.missed };
    case "TASK_UPDATED":
      return { tasks: { ...fleet.tasks, [event.taskId]: event.to } };
    case "PLAN_MODE_CHANGED":
      return { planMode: event.active || undefined };
    case "REQUIRE_USER_CONFIRM":
      return { confirmations: { ...fleet.confirmations, [event.confirmId]: event.toolCalls } };
    case "USER_CONFIRM_RESULT": {
      const { [event.confirmId]: _, ...confirmations } = fleet.confirmations;
      return { confirmations };
    }
    case "MODEL_CALL_END":
      return { usage: sum(fleet.usage, event.usage ?? NO_USAGE) };
    default:
      return {};
  }
}

function withAgent(fleet: FleetState, event: AgentEvent, places: Places): FleetState {
  const place = placeOf(fleet, keyOf(event), places);
  const before = fleet.agents[place] ?? started(event);
  const agent = applyToAgent(before, event);
  const agents = fleet.agents.slice();
  agents[place] = agent;
  const rateLimits = event.type === "MODEL_CALL_END" && event.rateLimits && agent.model
    ? { ...fleet.rateLimits, [agent.model]: event.rateLimits }
    : fleet.rateLimits;
  return { ...fleet, agents, rateLimits };
}

/** Returns the place of an agent; the next free one if it is new. */
function placeOf(fleet: FleetState, key: Key, places: Places): number {
  const place = places.get(key);
  if (place !== undefined) return place;
  places.set(key, fleet.agents.length);
  return fleet.agents.length;
}

function started(event: AgentEvent): AgentState {
  return {
    name: event.source?.agentId ?? event.rootId ?? "main",
    source: event.source,
    replyId: event.replyId!,
    phase: "starting",
    tools: [],
    lastLine: "",
    usage: NO_USAGE,
    iterations: 0,
    startedAt: event.createdAt,
  };
}

function applyToAgent(agent: AgentState, event: AgentEvent): AgentState {
  const next = { ...agent, ...agentPart(agent, event) };
  const taskId = event.source?.taskId;
  if (next.source && event.source && next.source.taskId !== taskId) next.source = { ...next.source, taskId };
  return next;
}

/** What an event changes in its agent. */
function agentPart(agent: AgentState, event: AgentEvent): Partial<AgentState> {
  switch (event.type) {
    case "AGENT_START":
      return restarted(event);
    case "AGENT_END":
      return ended(event);
    case "TEXT_BLOCK_DELTA":
      return { phase: "speaking", lastLine: lastLine(agent.lastLine + event.delta) };
    case "THINKING_BLOCK_DELTA":
      return { phase: "thinking", lastLine: lastLine(agent.lastLine + event.delta) };
    case "TEXT_BLOCK_START":
    case "THINKING_BLOCK_START":
      return { lastLine: "" };
    case "MODEL_CALL_START":
      return called(agent, event);
    case "MODEL_CALL_END":
      return usedUp(agent, event.usage ?? NO_USAGE);
    case "RATE_LIMIT_WAIT":
    case "RATE_LIMIT_PASSED":
    case "MODEL_RETRY":
    case "MODEL_FALLBACK":
      return agent.phase === "compacting" ? {} : delayed(event);
    case "TOOL_RESULT_START": {
      const { toolCallId, toolCallName: name, input, createdAt: startedAt } = event;
      return { tools: [...agent.tools, { toolCallId, name, input, startedAt }], phase: acting(agent.questions) };
    }
    case "TOOL_RESULT_END":
      return { tools: agent.tools.filter((tool) => tool.toolCallId !== event.toolCallId) };
    case "REQUIRE_USER_CONFIRM":
      return { questions: (agent.questions ?? 0) + 1, phase: "asking" };
    case "USER_CONFIRM_RESULT": {
      const questions = Math.max((agent.questions ?? 0) - 1, 0) || undefined;
      return { questions, phase: acting(questions) };
    }
    case "REQUIRE_EXTERNAL_EXECUTION":
      return { phase: "asking" };
    case "EXTERNAL_EXECUTION_RESULT":
      return { phase: acting(agent.questions) };
    default:
      return {};
  }
}

/** A further turn of the same instance begins. */
function restarted(event: Of<"AGENT_START">): Partial<AgentState> {
  return {
    name: event.name,
    source: event.source,
    replyId: event.replyId,
    phase: "starting",
    outcome: undefined,
    error: undefined,
    endedAt: undefined,
    tools: [],
    questions: undefined,
    lastLine: "",
  };
}

function ended(event: Of<"AGENT_END">): Partial<AgentState> {
  const { outcome, error, createdAt: endedAt } = event;
  return { outcome, error: error ?? undefined, endedAt, phase: "ended", tools: [], questions: undefined };
}

function called(agent: AgentState, event: Of<"MODEL_CALL_START">): Partial<AgentState> {
  if (event.purpose) return { phase: "compacting", model: event.modelName };
  const window = event.contextWindow ?? undefined;
  return {
    model: event.modelName,
    iterations: agent.iterations + 1,
    phase: "waiting",
    context: window === undefined ? undefined : { used: agent.context?.used ?? 0, window },
  };
}

function usedUp(agent: AgentState, usage: Usage): Partial<AgentState> {
  const counts = agent.context && agent.phase !== "compacting" && Object.values(usage).some((tokens) => tokens > 0);
  const context = counts ? { ...agent.context!, used: totalTokens(usage) } : agent.context;
  return { usage: sum(agent.usage, usage), context };
}

/** A model call waits, or is made again. */
function delayed(event: Of<"RATE_LIMIT_WAIT" | "RATE_LIMIT_PASSED" | "MODEL_RETRY" | "MODEL_FALLBACK">) {
  switch (event.type) {
    case "RATE_LIMIT_WAIT":
      return { phase: "rate_limited" as const };
    case "RATE_LIMIT_PASSED":
      return { phase: "waiting" as const };
    case "MODEL_RETRY":
      return { phase: "waiting" as const, lastLine: "" };
    case "MODEL_FALLBACK":
      return { phase: "waiting" as const, lastLine: "", model: event.to };
  }
}

/** Its tools run, unless one of them waits for a person. */
const acting = (questions: number | undefined) => ((questions ?? 0) > 0 ? "asking" as const : "acting" as const);

function sum(a: Usage, b: Usage): Usage {
  const total = { ...NO_USAGE };
  for (const name of Object.keys(total) as (keyof Usage)[]) total[name] = (a[name] ?? 0) + (b[name] ?? 0);
  return total;
}

/** Retains the end of a text, as Rust does: once it is long, its last characters. */
function lastLine(text: string): string {
  // A unit of UTF-16 has at most three bytes of UTF-8.
  if (text.length * 3 <= LAST_LINE_BYTES || utf8Length(text) <= LAST_LINE_BYTES) return text;
  return [...text].slice(-LAST_LINE).join("");
}

const utf8 = new TextEncoder();
const utf8Length = (text: string) => utf8.encode(text).length;
