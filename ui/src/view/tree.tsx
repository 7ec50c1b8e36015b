// The tree of agents: a `role=tree` in which the arrow keys move, and Enter selects.
import { useRef, useState } from "preact/hooks";
import type { AgentState, FleetState } from "../api";
import { SLOW, useCancelling, useDesk, useShown, wasRead } from "../desk";
import type { Key } from "../fleet/event";
import { agentKey, totalTokens } from "../fleet/fleet";
import { childrenOf, nameOf, placeOf, sessionOf } from "../fleet/view";
import { firstLine, visible } from "./text";
import { CANCELLING, stateOf, tokens } from "./words";

interface Row {
  agent: AgentState;
  level: number;
  hasChildren: boolean;
  parent?: Key;
}

/** The visible rows in order. */
function rowsOf(fleet: FleetState, folded: ReadonlySet<Key>): Row[] {
  const children = childrenOf(fleet);
  const rows: Row[] = [];
  const add = (agent: AgentState, level: number, parent?: Key) => {
    const key = agentKey(agent);
    const places = children.get(sessionOf(fleet, agent)) ?? [];
    rows.push({ agent, level, hasChildren: places.length > 0, parent });
    if (!folded.has(key)) places.forEach((place) => add(fleet.agents[place]!, level + 1, key));
  };
  fleet.agents.filter((agent) => !agent.source).forEach((root) => add(root, 1));
  return rows;
}

export function Tree() {
  const { session, selected, select } = useDesk();
  // The rows are others only once an agent is added; each of them follows its own agent.
  useShown(({ view }) => childrenOf(view.fleet), SLOW);
  useShown(({ view }) => view.fleet.agents.length, SLOW);
  const isKnown = useShown(wasRead);
  const { fleet } = session.shown.value.view;
  const [folded, setFolded] = useState<ReadonlySet<Key>>(new Set());
  const [focused, setFocused] = useState<Key>(selected);
  const list = useRef<HTMLUListElement>(null);
  const rows = rowsOf(fleet, folded);
  const keys = rows.map((row) => agentKey(row.agent));
  const active = keys.includes(focused) ? focused : keys[0];

  const go = (key: Key | undefined) => {
    if (key === undefined) return;
    setFocused(key);
    list.current?.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`)?.focus();
  };
  const fold = (key: Key, isFolded: boolean) => {
    const next = new Set(folded);
    if (isFolded) next.add(key);
    else next.delete(key);
    setFolded(next);
  };
  const press = (event: KeyboardEvent, row: Row) => {
    const place = rows.indexOf(row);
    const key = agentKey(row.agent);
    const isFolded = folded.has(key);
    const moves: Record<string, () => void> = {
      ArrowDown: () => go(keys[place + 1]),
      ArrowUp: () => go(keys[place - 1]),
      Home: () => go(keys[0]),
      End: () => go(keys.at(-1)),
      ArrowRight: () => (row.hasChildren && isFolded ? fold(key, false) : go(row.hasChildren ? keys[place + 1] : undefined)),
      ArrowLeft: () => (row.hasChildren && !isFolded ? fold(key, true) : go(row.parent)),
      Enter: () => select(key),
      " ": () => select(key),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  };

  if (rows.length === 0) return <p class="muted pad">{isKnown ? "No agent has started." : "Loading."}</p>;
  return (
    <ul role="tree" aria-label="agents" ref={list}>
      {rows.map((row) => {
        const key = agentKey(row.agent);
        return (
          <li key={key} role="treeitem" data-key={key} data-level={Math.min(row.level, 6)}
            aria-level={row.level} aria-selected={key === selected} aria-expanded={row.hasChildren ? !folded.has(key) : undefined}
            tabIndex={key === active ? 0 : -1} onClick={() => select(key)} onFocus={() => setFocused(key)} onKeyDown={(event) => press(event, row)}>
            <Line of={key} />
          </li>
        );
      })}
    </ul>
  );
}

/** What a row says of its agent. */
function Line({ of }: { of: Key }) {
  const agent = useShown(({ view }) => view.fleet.agents[placeOf(view.fleet, of)], SLOW);
  const isCancelling = useCancelling(of, SLOW);
  if (!agent) return null;
  const state = isCancelling ? CANCELLING : stateOf(agent);
  return (
    <>
      <span class={`line ${state.tone}`}>
        <span class="sign" aria-hidden="true">{state.sign}</span>
        <span class="who">{visible(nameOf(agent))}</span>
        <span class="muted">{tokens(totalTokens(agent.usage))}</span>
      </span>
      <span class="last muted">{[state.word, lastLine(agent)].filter(Boolean).join(" · ")}</span>
    </>
  );
}

/** What an agent does at the moment, or said last. */
function lastLine(agent: AgentState): string {
  const tool = agent.tools.at(-1);
  if (tool) return visible(tool.name);
  return firstLine(agent.lastLine.trimEnd().split("\n").at(-1) ?? "", 80);
}
