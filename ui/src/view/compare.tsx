// Two runs beside one another: their agents in one table, and the lanes of the selected agent.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { useDesk, useLink, useShown } from "../desk";
import { compareAgents, compareParts, defaultPair, DIFFERENCES, runsOf, viewOf, type AgentRow, type PartRow, type Run, type Side } from "../fleet/compare";
import type { AgentEvent } from "../fleet/event";
import type { Pair } from "../route";
import { PartView } from "./card";
import { Main } from "./main";
import { useSessions } from "./sessions";
import { firstLine, visible } from "./text";
import { duration, money, StateChip, stateOf, tokens } from "./words";

const TABS = ["Agents", "Run A", "Run B"] as const;

export function Compare({ pair }: { pair: Pair }) {
  const { session, go } = useDesk();
  const link = useLink();
  // With a link, no other session can be read.
  const sessionB = link ? undefined : pair.session;
  // A run that goes on is compared again once a second.
  const last = useShown((shown) => shown.last, { pause: 1000 });
  const other = useOther(sessionB);
  const own = session.events;
  const events = sessionB === undefined ? own : other.events ?? [];
  const [runs, runsB] = useMemo(() => [runsOf(own), runsOf(events)], [own, events, last]);
  const usual = sessionB === undefined ? defaultPair(runs) : { a: runs.at(-1)?.id, b: runsB.at(-1)?.id };
  const [a, b] = [pair.a ?? usual.a ?? "", pair.b ?? usual.b ?? ""];
  const rows = useMemo(() => (a && b ? compareAgents(viewOf(own, a), viewOf(events, b)) : []), [own, events, a, b, last]);
  const [chosen, choose] = useState<string>();
  const [tab, setTab] = useState<(typeof TABS)[number]>("Agents");
  const row = rows.find(({ id }) => id === chosen) ?? rows.find(({ differs }) => differs.some(isOfLane)) ?? rows[0];
  const change = (part: Partial<Pair>) => go({ compare: { a, b, ...(sessionB && { session: sessionB }), ...part } });
  const open = (id: string) => {
    choose(id);
    setTab("Run A");
  };
  const differing = rows.filter(({ differs }) => differs.length > 0).length;
  return (
    <Main class="compare" data-tab={tab} aria-label="two runs">
      <div class="row choose" role="group" aria-label="runs to compare">
        <Choice label="Run A" value={a} runs={runs} set={(id) => change({ a: id })} />
        {!link && <Others value={sessionB} set={(id) => go({ compare: { a, ...(id && { session: id }) } })} />}
        <Choice label="Run B" value={b} runs={runsB} set={(id) => change({ b: id })} />
        <span class="muted" role="status">{other.problem ?? (differing === 0 ? "No agent differs." : `${differing} of ${rows.length} agents differ.`)}</span>
        <span class="grow" />
        <button type="button" onClick={() => go({ compare: undefined })}>Close the comparison</button>
      </div>
      <nav class="tabs" aria-label="parts of the comparison">
        {TABS.map((one) => <button key={one} type="button" aria-pressed={one === tab} onClick={() => setTab(one)}>{one}</button>)}
      </nav>
      <div class="agents" tabIndex={0} role="region" aria-label="agents of both runs">
        <Agents rows={rows} chosen={row?.id} choose={open} />
      </div>
      {row && <Lanes row={row} />}
    </Main>
  );
}

const isOfLane = (difference: string): boolean => difference !== "time" && difference !== "tokens" && difference !== "cost";

interface Other {
  events?: readonly AgentEvent[];
  problem?: string;
}

const READING: Other = { problem: "Reading the other session." };

/** The record of another session. */
function useOther(id: string | undefined): Other {
  const { server } = useDesk().session;
  const [other, setOther] = useState(READING);
  useEffect(() => {
    if (id === undefined) return undefined;
    const stop = new AbortController();
    setOther(READING);
    server.record(id, stop.signal).then((events) => setOther({ events }), (error: unknown) => {
      if (!stop.signal.aborted) setOther({ problem: `The other session can't be read: ${error instanceof Error ? error.message : error}.` });
    });
    return () => stop.abort();
  }, [server, id]);
  return id === undefined ? {} : other;
}

function Choice({ label, value, runs, set }: { label: string; value: string; runs: readonly Run[]; set: (id: string) => void }) {
  return (
    <label>{label} <select aria-label={label} value={value} onChange={(event) => set(event.currentTarget.value)}>
      {runs.map(({ id, input, outcome }, n) => <option key={id} value={id}>{n + 1} · {firstLine(input, 40) || "resumed"} · {outcome ?? "running"}</option>)}
    </select></label>
  );
}

/** The session of run B; a record has no other one. */
function Others({ value, set }: { value: string | undefined; set: (id: string | undefined) => void }) {
  const { session } = useDesk();
  const sessions = useSessions(session.server);
  const ids = new Set([...(sessions?.items ?? []).map(({ id }) => id), ...(value ? [value] : [])]);
  ids.delete(session.id);
  if (ids.size === 0) return null;
  return (
    <label>with <select aria-label="Session of run B" value={value ?? ""} onChange={(event) => set(event.currentTarget.value || undefined)}>
      <option value="">this session</option>
      {[...ids].map((id) => <option key={id} value={id}>{visible(id)}</option>)}
    </select></label>
  );
}

function Agents({ rows, chosen, choose }: { rows: readonly AgentRow[]; chosen: string | undefined; choose: (id: string) => void }) {
  const heads = ["state", "time", "tokens", "cost"];
  return (
    <table>
      <thead>
        <tr><th rowSpan={2}>agent</th><th rowSpan={2}>differs</th><th colSpan={4} scope="colgroup">run A</th><th colSpan={4} scope="colgroup">run B</th></tr>
        <tr>{["a", "b"].map((side) => heads.map((head) => <th key={side + head} scope="col">{head}</th>))}</tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.id} class={row.id === chosen ? "selected" : undefined}>
            <th scope="row" data-level={Math.min(row.level, 6)}>
              <button type="button" class="name" aria-pressed={row.id === chosen} onClick={() => choose(row.id)}>{visible(row.name)}</button>
            </th>
            <td>{row.differs.length === 0 ? <span class="muted">—</span> : <b>≠ {row.differs.map((one) => DIFFERENCES[one]).join(", ")}</b>}</td>
            <Figures side={row.a} row={row} />
            <Figures side={row.b} row={row} />
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Figures({ side, row: { differs } }: { side: Side | undefined; row: AgentRow }) {
  if (!side) return <td colSpan={4} class="muted">not in this run</td>;
  const cell = (name: AgentRow["differs"][number], content: ComponentChildren) => <td class={differs.includes(name) ? "differs" : undefined}>{content}</td>;
  return (
    <>
      {cell("state", <StateChip state={stateOf(side.agent)} />)}
      {cell("time", duration(side.milliseconds))}
      {cell("tokens", tokens(side.tokens))}
      {cell("cost", side.cost === undefined ? "" : money(side.cost))}
    </>
  );
}

/** An agent that is done says so in the table. */
const read = (side: Side | undefined) => side?.lane.parts.filter((part) => part.kind !== "end" || part.outcome !== "success") ?? [];

/** The lanes of one agent, with equal parts beside one another. */
function Lanes({ row }: { row: AgentRow }) {
  const parts = useMemo(() => compareParts(read(row.a), read(row.b)), [row.a?.lane, row.b?.lane]);
  return (
    <div class="lanes" tabIndex={0} role="region" aria-label={`both lanes of ${visible(row.name)}`}>
      <h2 class="a">Run A · {visible(row.name)}</h2><h2 class="b">Run B · {visible(row.name)}</h2>
      {parts.map((part, n) => <Both key={n} part={part} isRoot={row.level === 1} />)}
    </div>
  );
}

const SAID: Record<NonNullable<PartRow["differs"]>, string> = { only: "in this run only", content: "differs", result: "the result differs" };

function Both({ part: { a, b, differs }, isRoot }: { part: PartRow; isRoot: boolean }) {
  return (
    <>
      {([["a", a], ["b", b]] as const).map(([side, part]) => (
        <div key={side} class={`${side} ${differs && part ? "differs" : ""}`}>
          {part && differs && <span class="mark">≠ {SAID[differs]}</span>}
          {part && <PartView part={part} isRoot={isRoot} />}
        </div>
      ))}
    </>
  );
}
