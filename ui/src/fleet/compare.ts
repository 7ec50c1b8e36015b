// Two runs beside one another: which agents, parts and figures differ.
import type { AgentState } from "../api";
import { keyOf, ROOT, type AgentEvent } from "./event";
import { idOf } from "./filter";
import { indexed, totalTokens } from "./fleet";
import { EMPTY, textOf, type Lane, type Part } from "./lane";
import { apply, childrenOf, costOf, nameOf, NO_VIEW, sessionOf, type View } from "./view";

/** A run of a session, as its record tells. */
export interface Run {
  id: string;
  input: string;
  outcome?: string;
}

export function runsOf(events: readonly AgentEvent[]): Run[] {
  const runs = new Map<string, Run>();
  for (const event of events) {
    if (!event.runId || keyOf(event) !== ROOT) continue;
    if (event.type === "AGENT_START") runs.set(event.runId, { id: event.runId, input: textOf(event.input.flatMap(({ content }) => content)) });
    const run = runs.get(event.runId);
    if (run && event.type === "AGENT_END") run.outcome = event.outcome;
  }
  return [...runs.values()];
}

/** Returns the runs that are compared unless others are chosen: the last one, and the one it repeats. */
export function defaultPair(runs: readonly Run[]): { a?: string; b?: string } {
  const b = runs.at(-1);
  const earlier = runs.slice(0, -1);
  const a = earlier.findLast((run) => run.input === b?.input) ?? earlier.at(-1) ?? b;
  return { a: a?.id, b: b?.id };
}

/** The view of one run at its end. */
export function viewOf(events: readonly AgentEvent[], run: string): View {
  const places = indexed([]);
  return events.reduce((view, event) => (event.runId === run ? apply(view, event, places) : view), NO_VIEW);
}

export const DIFFERENCES = {
  only: "in one run only",
  state: "state",
  calls: "calls",
  texts: "texts",
  results: "results",
  time: "time",
  tokens: "tokens",
  cost: "cost",
} as const;

export type Difference = keyof typeof DIFFERENCES;

/** One agent in one run. */
export interface Side {
  agent: AgentState;
  lane: Lane;
  milliseconds: number;
  tokens: number;
  cost?: number | undefined;
}

/** An agent of both runs, or of one. */
export interface AgentRow {
  /** The names from the leading agent to this one, with the number among those of the same name. */
  id: string;
  name: string;
  level: number;
  a?: Side | undefined;
  b?: Side | undefined;
  differs: readonly Difference[];
}

/** The agents of two runs, each below its parent. */
export function compareAgents(a: View, b: View): AgentRow[] {
  const rows: AgentRow[] = [];
  const add = (pairs: Pair[], level: number, above: string) => {
    pairs.forEach(([inA, inB], n) => {
      const sides = { a: sideOf(a, inA), b: sideOf(b, inB) };
      const name = nameOf((sides.a ?? sides.b)!.agent);
      const id = `${above}/${name}#${pairs.slice(0, n).filter(([x, y]) => nameAt(a, x) === name || nameAt(b, y) === name).length}`;
      rows.push({ id, name, level, ...sides, differs: differences(sides.a, sides.b) });
      add(paired(a, childrenAt(a, inA), b, childrenAt(b, inB)), level + 1, id);
    });
  };
  add(paired(a, rootsOf(a), b, rootsOf(b)), 1, "");
  return rows;
}

/** The places of an agent in both views. */
type Pair = [number | undefined, number | undefined];

const rootsOf = ({ fleet }: View): number[] => fleet.agents.flatMap(({ source }, place) => (source ? [] : [place]));

function childrenAt({ fleet }: View, place: number | undefined): readonly number[] {
  const agent = place === undefined ? undefined : fleet.agents[place];
  return (agent && childrenOf(fleet).get(sessionOf(fleet, agent))) ?? [];
}

const nameAt = (view: View, place: number | undefined) => (place === undefined ? undefined : nameOf(view.fleet.agents[place]!));

/**
 * Pairs siblings by name and title, in order; then those whose title is another one by their id.
 */
function paired(a: View, inA: readonly number[], b: View, inB: readonly number[]): Pair[] {
  const free = new Set(inB);
  const mates = new Map<number, number>();
  for (const name of [nameOf, idOf]) {
    for (const place of inA) {
      const mate = mates.has(place) ? undefined : [...free].find((other) => name(b.fleet.agents[other]!) === name(a.fleet.agents[place]!));
      if (mate === undefined) continue;
      mates.set(place, mate);
      free.delete(mate);
    }
  }
  return [...inA.map((place): Pair => [place, mates.get(place)]), ...[...free].map((place): Pair => [undefined, place])];
}

function sideOf(view: View, place: number | undefined): Side | undefined {
  const agent = place === undefined ? undefined : view.fleet.agents[place];
  if (!agent) return undefined;
  const lane = view.lanes[place!] ?? EMPTY;
  const milliseconds = Date.parse(agent.endedAt ?? view.fleet.at) - Date.parse(agent.startedAt);
  return { agent, lane, milliseconds, tokens: totalTokens(agent.usage), cost: costOf(lane) };
}

function differences(a: Side | undefined, b: Side | undefined): Difference[] {
  if (!a || !b) return ["only"];
  const rows = compareParts(a.lane.parts, b.lane.parts);
  const some = (kinds: Part["kind"][], is: (row: PartRow) => boolean) => rows.some((row) => kinds.includes((row.a ?? row.b)!.kind) && is(row));
  const found: Record<Exclude<Difference, "only">, boolean> = {
    state: a.agent.outcome !== b.agent.outcome,
    calls: some(["call"], (row) => row.differs !== undefined && row.differs !== "result"),
    texts: some(["text", "message", "note"], (row) => row.differs !== undefined),
    results: some(["call", "data"], (row) => row.differs === "result"),
    time: isOther(a.milliseconds, b.milliseconds),
    tokens: a.tokens !== b.tokens,
    cost: a.cost !== b.cost,
  };
  return (Object.keys(found) as (keyof typeof found)[]).filter((name) => found[name]);
}

/** Times of two runs are never the same; they differ by a tenth and a tenth of a second. */
const isOther = (a: number, b: number): boolean => Math.abs(a - b) >= Math.max(100, Math.max(a, b) / 10);

/** A part of both lanes, or of one. */
export interface PartRow {
  a?: Part | undefined;
  b?: Part | undefined;
  differs?: "only" | "content" | "result";
}

/** Aligns the parts of two lanes, so that as many as possible stand beside an equal one. */
export function compareParts(a: readonly Part[], b: readonly Part[]): PartRow[] {
  const [facesA, facesB] = [a.map(faceOf), b.map(faceOf)];
  // The best score of the rest behind each pair of places: 3 for an equal part, 1 for one of the same kind.
  const width = b.length + 1;
  const best = new Uint32Array((a.length + 1) * width);
  const gain = (i: number, j: number) => (facesA[i]!.kind !== facesB[j]!.kind ? 0 : facesA[i]!.content === facesB[j]!.content ? 3 : 1);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const together = gain(i, j);
      best[i * width + j] = Math.max(best[(i + 1) * width + j]!, best[i * width + j + 1]!, together > 0 ? together + best[(i + 1) * width + j + 1]! : 0);
    }
  }
  const rows: PartRow[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const score = best[i * width + j]!;
    const together = i < a.length && j < b.length ? gain(i, j) : 0;
    if (together > 0 && score === together + best[(i + 1) * width + j + 1]!) {
      rows.push({ a: a[i], b: b[j], ...differenceOf(facesA[i]!, facesB[j]!) });
      [i, j] = [i + 1, j + 1];
    } else if (i < a.length && score === best[(i + 1) * width + j]!) {
      rows.push({ a: a[i++], differs: "only" });
    } else {
      rows.push({ b: b[j++], differs: "only" });
    }
  }
  return rows;
}

/** What is compared of a part. */
interface Face {
  kind: string;
  content: string;
  result: string;
}

/** Ids are others in each run. */
const IDS = /\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;

function faceOf(part: Part): Face {
  const face = (kind: string, content: string, result = ""): Face => ({ kind, content: content.replace(IDS, "id"), result: result.replace(IDS, "id") });
  switch (part.kind) {
    case "call":
      return face(`call ${part.name}`, compact(part.arguments), `${part.state} ${part.result} ${JSON.stringify(part.data)}`);
    case "message":
      return face(`message ${part.mode}`, textOf(part.message.content));
    case "note":
      return face("note", `${part.title} ${part.text}`);
    case "end":
      return face("end", `${part.outcome} ${part.error?.message}`);
    case "data":
      return face("data", part.mediaType, part.base64);
    default:
      return face(part.kind, part.text);
  }
}

function compact(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json));
  } catch {
    return json;
  }
}

function differenceOf(a: Face, b: Face): Pick<PartRow, "differs"> {
  if (a.content !== b.content) return { differs: "content" };
  return a.result === b.result ? {} : { differs: "result" };
}
