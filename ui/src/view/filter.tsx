// Chooses which agents and which of their parts the lanes and the timeline show; the choice is in
// the address.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { ChosenContext, SLOW, useChosen, useDesk, useShown } from "../desk";
import { ROOT } from "../fleet/event";
import { depthOf, idOf, matchesOf, PART_KINDS, type Filter, type PartKind } from "../fleet/filter";
import { childrenOf, nameOf, placeOf } from "../fleet/view";
import { visible } from "./text";

/** Applies a filter to what is inside. */
export function Filtered({ filter, children }: { filter: Filter; children: ComponentChildren }) {
  const { session } = useDesk();
  const known = useShown(({ view }) => childrenOf(view.fleet), SLOW);
  const count = useShown(({ view }) => view.fleet.agents.length, SLOW);
  // Ids and depths of agents do not change, so that this is computed again once there is another.
  const chosen = useMemo(() => ({ filter, matches: matchesOf(session.shown.value.view.fleet, filter) }), [session, filter, known, count]);
  return <ChosenContext.Provider value={chosen}>{children}</ChosenContext.Provider>;
}

const KINDS = Object.entries(PART_KINDS) as [PartKind, string][];

export function FilterBar() {
  const { session, selected, go } = useDesk();
  const { filter, matches } = useChosen();
  const count = useShown(({ view }) => view.fleet.agents.length, SLOW);
  const { fleet } = session.shown.value.view;
  const within = fleet.agents[placeOf(fleet, filter.within ?? selected)];
  const ids = [...new Set([...fleet.agents.map(idOf), ...(filter.id ? [filter.id] : [])])];
  const depths = [...new Set([...fleet.agents.map(depthOf), ...(filter.depth === undefined ? [] : [filter.depth])])].sort((a, b) => a - b);
  const isOn = Object.keys(filter).length > 0;
  const change = (part: Partial<Filter>) => {
    const next = Object.entries({ ...filter, ...part }).filter(([, value]) => value !== undefined);
    go({ filter: next.length > 0 ? Object.fromEntries(next) : undefined });
  };
  const toggle = (kind: PartKind) => {
    const kinds = KINDS.map(([one]) => one).filter((one) => (filter.kinds?.includes(one) ?? false) !== (one === kind));
    change({ kinds: kinds.length > 0 ? kinds : undefined });
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "Escape" && isOn) go({ filter: undefined });
  };
  if (count === 0 && !isOn) return null;
  return (
    <div class="row filter" role="group" aria-label="filter" onKeyDown={press}>
      <label><span class="hidden">Agents</span><select value={filter.id ?? ""} onChange={(event) => change({ id: event.currentTarget.value || undefined })}>
        <option value="">all agents</option>
        {ids.map((id) => <option key={id} value={id}>{visible(id)}</option>)}
      </select></label>
      <label><span class="hidden">Depth</span><select value={filter.depth ?? ""} onChange={(event) => change({ depth: event.currentTarget.value === "" ? undefined : Number(event.currentTarget.value) })}>
        <option value="">any depth</option>
        {depths.map((depth) => <option key={depth} value={depth}>{depth === 0 ? "the leading agent" : `depth ≤ ${depth}`}</option>)}
      </select></label>
      <button type="button" aria-pressed={filter.within !== undefined} disabled={filter.within === undefined && selected === ROOT}
        onClick={() => change({ within: filter.within === undefined ? selected : undefined })}>
        subtree of {within ? visible(nameOf(within)) : visible(filter.within ?? selected)}
      </button>
      {KINDS.map(([kind, word]) => (
        <button key={kind} type="button" aria-pressed={filter.kinds?.includes(kind) ?? false} onClick={() => toggle(kind)}>{word}</button>
      ))}
      {isOn && <button type="button" onClick={() => go({ filter: undefined })}>Clear the filter</button>}
      {matches && <span class="muted">{matches.shown.size} of {count} agents</span>}
    </div>
  );
}
