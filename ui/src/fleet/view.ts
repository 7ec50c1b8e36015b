// What the page shows of a session at one event: the state of the fleet, and a lane for each agent.
import type { AgentState, FleetState, Outcome, ToolCall } from "../api";
import { keyOf, ROOT, type AgentEvent, type Key } from "./event";
import { agentKey, apply as applyToFleet, NO_FLEET, type Places } from "./fleet";
import { applyToLane, EMPTY, type Lane } from "./lane";

/** A tool call that the caller runs. */
export interface External {
  key: Key;
  call: ToolCall;
}

/** The latest run that has begun. */
export interface LatestRun {
  id: string;
  startedAt: string;
  endedAt?: string;
  outcome?: Outcome;
}

export interface View {
  fleet: FleetState;
  /** By the place of the agent in `fleet.agents`. */
  lanes: readonly Lane[];
  external: readonly External[];
  /** The agent of each open request for approval. */
  asking: Readonly<Record<string, Key>>;
  run?: LatestRun;
  /** Children that accept no further messages. */
  closed: readonly Key[];
}

export const NO_VIEW: View = { fleet: NO_FLEET, lanes: [], external: [], asking: {}, closed: [] };

/** The view of a snapshot, whose agents have no lanes yet. */
export function ofSnapshot(fleet: FleetState): View {
  return { ...NO_VIEW, fleet, lanes: fleet.agents.map(() => EMPTY) };
}

export function apply(view: View, event: AgentEvent, places: Places): View {
  if (event.seq <= view.fleet.seq) return view;
  const fleet = applyToFleet(view.fleet, event, places);
  const place = places.get(subjectOf(event));
  const lanes = place === undefined || place >= fleet.agents.length ? view.lanes : withLane(view.lanes, place, event);
  return { ...view, fleet, lanes, ...rest(view, event) };
}

/** The agent whose lane shows an event. */
export function subjectOf(event: AgentEvent): Key {
  const isAbout = event.type === "MESSAGE_SENT" || event.type === "AGENT_CLOSED" || event.type === "STATE_CHECKPOINT";
  return isAbout ? event.agentKey : keyOf(event);
}

function withLane(lanes: readonly Lane[], place: number, event: AgentEvent): readonly Lane[] {
  const next = lanes.slice();
  next[place] = applyToLane(lanes[place] ?? EMPTY, event);
  return next;
}

function rest(view: View, event: AgentEvent): Partial<View> {
  const isRoot = keyOf(event) === ROOT;
  switch (event.type) {
    case "AGENT_START":
      return isRoot && event.runId ? { run: { id: event.runId, startedAt: event.createdAt } } : {};
    case "AGENT_END":
      return {
        // Only a suspended agent still takes the results of its calls.
        external: event.outcome === "suspended" ? view.external : view.external.filter(({ key }) => key !== keyOf(event)),
        run: isRoot && view.run ? { ...view.run, endedAt: event.createdAt, outcome: event.outcome } : view.run,
      };
    case "REQUIRE_USER_CONFIRM":
      return { asking: { ...view.asking, [event.confirmId]: keyOf(event) } };
    case "USER_CONFIRM_RESULT": {
      const { [event.confirmId]: _, ...asking } = view.asking;
      return { asking };
    }
    case "REQUIRE_EXTERNAL_EXECUTION": {
      const key = keyOf(event);
      return { external: [...view.external, ...event.toolCalls.map((call) => ({ key, call }))] };
    }
    case "EXTERNAL_EXECUTION_RESULT": {
      const answered = new Set(event.toolResults.map((result) => result.toolCallId));
      return { external: view.external.filter(({ call }) => !answered.has(call.id)) };
    }
    case "AGENT_CLOSED":
      return { closed: [...view.closed, event.agentKey] };
    default:
      return {};
  }
}

/** The money of an agent with its children, in millionths of a dollar; absent if it is unknown. */
export const costOf = (lane: Lane): number | undefined => sumOf(lane.rollups.map((rollup) => rollup.inclusiveCost));

/** The same without its children. */
export const ownCostOf = (lane: Lane): number | undefined => sumOf(lane.rollups.map((rollup) => rollup.ownCost));

function sumOf(costs: readonly (number | null | undefined)[]): number | undefined {
  if (costs.length === 0 || costs.some((cost) => cost == null)) return undefined;
  return costs.reduce<number>((sum, cost) => sum + cost!, 0);
}

export const rootOf = (fleet: FleetState): AgentState | undefined => fleet.agents.find((agent) => !agent.source);

/** Whether the leading agent works on a run. */
export function isRunning(view: View): boolean {
  const root = rootOf(view.fleet);
  return root !== undefined && root.outcome === undefined;
}

/** The parent's call that spawned an agent. */
export const callOf = (view: View, place: number): string | undefined =>
  view.lanes[place]?.callId ?? view.fleet.agents[place]?.source?.parentToolCallId ?? undefined;

/** The places of the children of each session, in the order of their first start. */
export type Children = ReadonlyMap<string, readonly number[]>;

const MOST_KNOWN = 16;

/** The last children of each fleet that was asked for; there are as many as sessions on the page. */
const known = new Map<string, { count: number; children: Children }>();

/**
 * Returns the same map until an agent is added, so that a component sees that nothing has changed.
 */
export function childrenOf(fleet: FleetState): Children {
  const first = `${fleet.sessionId} ${fleet.agents[0]?.startedAt}`;
  const before = known.get(first);
  if (before?.count === fleet.agents.length) return before.children;
  const children = new Map<string, number[]>();
  fleet.agents.forEach(({ source }, place) => {
    if (source) children.set(source.parentSessionId, [...(children.get(source.parentSessionId) ?? []), place]);
  });
  if (!before && known.size >= MOST_KNOWN) known.clear();
  known.set(first, { count: fleet.agents.length, children });
  return children;
}

export const sessionOf = (fleet: FleetState, agent: AgentState): string =>
  agent.source?.sessionId ?? fleet.sessionId ?? "";

export const parentOf = (fleet: FleetState, { source }: AgentState): AgentState | undefined =>
  source == null ? undefined : fleet.agents.find((one) => sessionOf(fleet, one) === source.parentSessionId);

/**
 * Whether an agent still runs though it was cancelled, or an agent above it. The key of a task
 * without an agent is its id.
 */
export function isBeingCancelled(fleet: FleetState, cancelling: ReadonlySet<Key>, key: Key): boolean {
  if (cancelling.size === 0) return false;
  const agent = fleet.agents[placeOf(fleet, key)];
  if (!agent) return cancelling.has(key);
  const isMeant = (one: AgentState | undefined): boolean => one !== undefined && (cancelling.has(agentKey(one)) || isMeant(parentOf(fleet, one)));
  return agent.outcome === undefined && isMeant(agent);
}

/** The name of an agent with its title; events of earlier versions have a label at most. */
export function nameOf({ name, source }: AgentState): string {
  const title = source?.title ?? source?.label;
  return title ? `${name} · ${title}` : name;
}

export const placeOf = (fleet: FleetState, key: Key): number =>
  fleet.agents.findIndex((agent) => agentKey(agent) === key);
