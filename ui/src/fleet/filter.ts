// Which agents and which of their parts are shown.
import type { AgentState, FleetState } from "../api";
import { ROOT, type Key } from "./event";
import { agentKey } from "./fleet";
import type { Part, Span } from "./lane";
import { childrenOf, placeOf, sessionOf } from "./view";

/** The kinds of parts that can be chosen, with their words. */
export const PART_KINDS = {
  text: "texts",
  thinking: "thinking",
  tools: "tools",
  messages: "messages",
  notes: "notes",
} as const;

export type PartKind = keyof typeof PART_KINDS;

/** What is shown; an absent field restricts nothing. */
export interface Filter {
  /** The id of an agent, of which there may be several instances. */
  id?: string;
  /** An instance, which is shown with its subtree. */
  within?: Key;
  /** The depth of the deepest agents; the leading agent has 0. */
  depth?: number;
  kinds?: readonly PartKind[];
}

const KIND_OF: Record<Part["kind"], PartKind> = {
  text: "text",
  data: "text",
  thinking: "thinking",
  call: "tools",
  message: "messages",
  note: "notes",
  end: "notes",
};

export const isShown = ({ kinds }: Filter, part: Part): boolean => kinds === undefined || kinds.includes(KIND_OF[part.kind]);

/** Whether a span is shown: a model call writes texts and thinking. */
export function isSpanShown({ kinds }: Filter, { kind }: Span): boolean {
  if (kinds === undefined) return true;
  return kind === "tool" ? kinds.includes("tools") : kinds.includes("text") || kinds.includes("thinking");
}

export const idOf = (agent: AgentState): string => agent.source?.agentId ?? agent.name;

/** The depth of an agent below the leading one. */
export const depthOf = (agent: AgentState): number => agent.source?.depth ?? 0;

/** The places of the agents that are shown, and of those that lead to them. */
export interface Matches {
  shown: ReadonlySet<number>;
  onPath: ReadonlySet<number>;
}

/** Returns the agents that a filter shows; undefined if it shows all. */
export function matchesOf(fleet: FleetState, { id, within, depth }: Filter): Matches | undefined {
  if (id === undefined && within === undefined && depth === undefined) return undefined;
  const children = childrenOf(fleet);
  const inside = within === undefined || within === ROOT ? undefined : subtreeOf(fleet, within);
  const [shown, onPath] = [new Set<number>(), new Set<number>()];
  const visit = (place: number): boolean => {
    const agent = fleet.agents[place]!;
    const isMatch = (id === undefined || idOf(agent) === id) && (depth === undefined || depthOf(agent) <= depth) && (inside?.has(place) ?? true);
    if (isMatch) shown.add(place);
    const below = (children.get(sessionOf(fleet, agent)) ?? []).map(visit);
    const leads = isMatch || below.includes(true);
    if (leads) onPath.add(place);
    return leads;
  };
  fleet.agents.forEach(({ source }, place) => !source && visit(place));
  return { shown, onPath };
}

/** Returns the places of an agent and of all below it. */
export function subtreeOf(fleet: FleetState, key: Key): ReadonlySet<number> {
  const children = childrenOf(fleet);
  const found = new Set<number>();
  const open = [placeOf(fleet, key)].filter((place) => place >= 0);
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    found.add(place);
    open.push(...(children.get(sessionOf(fleet, fleet.agents[place]!)) ?? []));
  }
  return found;
}

/** Returns the keys of an agent and of all below it. */
export const keysBelow = (fleet: FleetState, key: Key): ReadonlySet<Key> =>
  new Set([...subtreeOf(fleet, key)].map((place) => agentKey(fleet.agents[place]!)));
