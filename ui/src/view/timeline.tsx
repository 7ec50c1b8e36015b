// One bar for each agent, with what it spent its time on; and the same as a table.
import { useEffect, useState } from "preact/hooks";
import type { AgentState } from "../api";
import { useChosen, useDesk } from "../desk";
import { isSpanShown } from "../fleet/filter";
import { agentKey } from "../fleet/fleet";
import { EMPTY, type Lane, type Span } from "../fleet/lane";
import { callOf, nameOf, type View } from "../fleet/view";
import { visible } from "./text";
import { duration } from "./words";

/**
 * How often a live timeline is drawn, in milliseconds: it moves too slowly for every frame to
 * matter.
 */
const EVERY = 500;
const WIDTH = 1000;
const MOST_ROWS = 100;

const KINDS = ["model", "tool", "children", "queued"] as const;
type Kind = (typeof KINDS)[number];
const WORDS: Record<Kind, string> = { model: "model", tool: "tools", children: "waits for children", queued: "waits for a rate limit" };

/** The session's view, at most every half second; at once while it is replayed. */
function useSlowView(): View {
  const { shown } = useDesk().session;
  const [view, setView] = useState(shown.value.view);
  useEffect(() => {
    let timer: number | undefined;
    const draw = () => {
      timer = undefined;
      setView(shown.value.view);
    };
    const changed = () => {
      if (shown.value.replay !== undefined) draw();
      else timer ??= window.setTimeout(draw, EVERY);
    };
    draw();
    const stop = shown.subscribe(changed);
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [shown]);
  return view;
}

export function Timeline() {
  const view = useSlowView();
  const { select, selected } = useDesk();
  const { filter, matches } = useChosen();
  const { agents } = view.fleet;
  if (agents.length === 0) return null;
  const from = Math.min(...agents.map((agent) => Date.parse(agent.startedAt)));
  const to = Math.max(from + 1, Date.parse(view.fleet.at));
  const spawning = new Set(agents.map((_, place) => callOf(view, place)));
  const spansOf = (lane: Lane) => lane.spans.filter((span) => isSpanShown(filter, span));
  const places = agents.map((_, place) => place).filter((place) => matches?.shown.has(place) ?? true);
  const rows = places.slice(0, MOST_ROWS).map((place) => ({ agent: agents[place]!, spans: spansOf(view.lanes[place] ?? EMPTY) }));
  const kindOf = (span: Span): Kind => (span.kind === "tool" && spawning.has(span.id) ? "children" : span.kind);
  return (
    <section class="timeline" aria-label="timeline">
      <div class="row legend">
        <h2>Timeline</h2>
        {KINDS.map((kind) => <span key={kind}><i class={`key ${kind}`} /> {WORDS[kind]}</span>)}
        <span class="grow" /><span class="muted">{duration(to - from)}</span>
      </div>
      <div class="rows" tabIndex={0} role="group" aria-label="bars">
        {rows.map(({ agent, spans }) => (
          <div key={agentKey(agent)} class={agentKey(agent) === selected ? "bar selected" : "bar"} onClick={() => select(agentKey(agent))}>
            <span class="who">{visible(nameOf(agent))}</span>
            <Bars agent={agent} spans={spans} from={from} to={to} kindOf={kindOf} />
          </div>
        ))}
      </div>
      {places.length > MOST_ROWS && <p class="muted">{places.length - MOST_ROWS} further agents</p>}
      <details class="twin"><summary>As a table</summary><Twin rows={rows} kindOf={kindOf} until={to} /></details>
    </section>
  );
}

interface BarProps {
  agent: AgentState;
  spans: readonly Span[];
  from: number;
  to: number;
  kindOf: (span: Span) => Kind;
}

function Bars({ agent, spans, from, to, kindOf }: BarProps) {
  const x = (at: number) => ((Math.min(at, to) - from) * WIDTH) / (to - from);
  const rect = (start: number, end: number, kind: string, key: string | number) =>
    <rect key={key} class={kind} x={x(start)} y={kind === "life" ? 4 : 1} width={Math.max(1, x(end) - x(start))} height={kind === "life" ? 2 : 8} />;
  return (
    <svg viewBox={`0 0 ${WIDTH} 10`} preserveAspectRatio="none" aria-hidden="true">
      {rect(Date.parse(agent.startedAt), agent.endedAt ? Date.parse(agent.endedAt) : to, "life", "life")}
      {spans.map((span, n) => rect(span.from, span.to ?? to, kindOf(span), n))}
    </svg>
  );
}

function Twin({ rows, kindOf, until }: { rows: { agent: AgentState; spans: readonly Span[] }[]; kindOf: (span: Span) => Kind; until: number }) {
  const sum = (spans: readonly Span[], kind: Kind) =>
    spans.filter((span) => kindOf(span) === kind).reduce((time, span) => time + (span.to ?? until) - span.from, 0);
  // A model call that waits for a rate limit has not been sent.
  const spent = (spans: readonly Span[], kind: Kind) => Math.max(0, sum(spans, kind) - (kind === "model" ? sum(spans, "queued") : 0));
  return (
    <table>
      <thead><tr><th>agent</th>{KINDS.map((kind) => <th key={kind}>{WORDS[kind]}</th>)}</tr></thead>
      <tbody>
        {rows.map(({ agent, spans }) => (
          <tr key={agentKey(agent)}><th scope="row">{visible(nameOf(agent))}</th>{KINDS.map((kind) => <td key={kind}>{duration(spent(spans, kind))}</td>)}</tr>
        ))}
      </tbody>
    </table>
  );
}
