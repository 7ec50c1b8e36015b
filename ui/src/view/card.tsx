// An agent's lane: its texts, tool calls and notes in order, with a card for each child below the
// call that spawned it.
import { Component, type ComponentChildren, type HTMLAttributes } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { AgentState, ContentBlock, StoredData } from "../api";
import { useCancelling, useChosen, useDesk, useShown, useUntil } from "../desk";
import { isShown } from "../fleet/filter";
import { agentKey, totalTokens } from "../fleet/fleet";
import { textOf, type CallPart, type DataPart, type EndPart, type MessagePart, type NotePart, type Part, type TextPart } from "../fleet/lane";
import { callOf, childrenOf, costOf, nameOf, sessionOf, type View } from "../fleet/view";
import { base64Of } from "../server";
import { firstLine, Markdown, Output, visible } from "./text";
import { CANCELLING, duration, Elapsed, fillOf, money, StateChip, stateOf, tokens, type State } from "./words";

const NONE: readonly number[] = [];

/** An agent with its head; `depth` is that of the card, not of the agent. */
export function Card({ place, depth }: { place: number; depth: number }) {
  const { select } = useDesk();
  const box = useRef<HTMLElement>(null);
  const { isSeen, wasSeen } = useSeen(box, place < FIRST);
  const agent = useShown(({ view }) => view.fleet.agents[place], { isSeen });
  const isCancelling = useCancelling(agent ? agentKey(agent) : "", { isSeen });
  if (!agent) return null;
  const name = visible(nameOf(agent));
  const state = isCancelling ? CANCELLING : stateOf(agent);
  // Only a card of the first level scrolls by itself.
  const scrolls = depth === 1 ? { tabIndex: 0, role: "group" as const, "aria-label": `output of ${name}` } : {};
  return (
    <section ref={box} class={`card ${state.tone}`} aria-label={`agent ${name}`} data-agent={agentKey(agent)}>
      <header>
        <button type="button" class="name" onClick={() => select(agentKey(agent))}>{name}</button>
        {agent.source && agent.source.turn > 1 && <span class="muted">turn {agent.source.turn}</span>}
        {agent.source?.taskId && <span class="muted">in the background</span>}
        <StateChip state={state} />
        <Figures agent={agent} place={place} isSeen={isSeen} />
      </header>
      {wasSeen && <Follow class="body" {...scrolls}><Lane place={place} depth={depth} isSeen={isSeen} /></Follow>}
    </section>
  );
}

/** Time, tokens and cost of an agent. */
function Figures({ agent, place, isSeen }: { agent: AgentState; place: number; isSeen: boolean }) {
  const cost = useShown(({ view }) => view.lanes[place] && costOf(view.lanes[place]), { isSeen });
  const until = useUntil();
  return (
    <span class="figures">
      <Elapsed from={agent.startedAt} to={agent.endedAt ?? undefined} until={until} />
      <span>{tokens(totalTokens(agent.usage))}</span>
      {cost !== undefined && <span>{money(cost)}</span>}
      {agent.context && agent.context.used > 0 && <span>{fillOf(agent.context)} % context</span>}
    </span>
  );
}

/** Of a large fleet only these are drawn before they are in sight. */
const FIRST = 50;

type Seen = (isSeen: boolean) => void;
const watched = new WeakMap<Element, Seen>();
const observer = new IntersectionObserver((entries) => entries.forEach((entry) => watched.get(entry.target)?.(entry.isIntersecting)), { rootMargin: "100px" });

/** Whether an element is in sight, or almost; and whether it ever was. */
function useSeen(ref: { current: Element | null }, isFirst: boolean): { isSeen: boolean; wasSeen: boolean } {
  const [seen, setSeen] = useState({ isSeen: isFirst, wasSeen: isFirst });
  useEffect(() => {
    const element = ref.current!;
    watched.set(element, (isSeen) => setSeen((before) => ({ isSeen, wasSeen: before.wasSeen || isSeen })));
    observer.observe(element);
    return () => observer.unobserve(element);
  }, [ref]);
  return seen;
}

/**
 * A box that keeps the end of its growing content in sight, unless the reader has scrolled away
 * from it.
 */
export function Follow({ children, ...props }: { children: ComponentChildren } & HTMLAttributes<HTMLDivElement>) {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const outer = box.current!;
    let [isAtEnd, top] = [true, 0];
    const scrolled = () => {
      const isNear = outer.scrollHeight - outer.scrollTop - outer.clientHeight < 40;
      // Only a reader scrolls up; content that grows meanwhile only moves the end away.
      isAtEnd = isNear || (isAtEnd && outer.scrollTop >= top);
      top = outer.scrollTop;
    };
    const grown = new ResizeObserver(() => {
      if (isAtEnd) outer.scrollTop = outer.scrollHeight;
    });
    outer.addEventListener("scroll", scrolled, { passive: true });
    grown.observe(content.current!);
    grown.observe(outer);
    return () => {
      grown.disconnect();
      outer.removeEventListener("scroll", scrolled);
    };
  }, []);
  return <div {...props} ref={box}><div ref={content}>{children}</div></div>;
}

/** The places of an agent's children; none while a replay is before its start. */
function childrenAt(view: View, place: number): readonly number[] {
  const agent = view.fleet.agents[place];
  return (agent && childrenOf(view.fleet).get(sessionOf(view.fleet, agent))) ?? NONE;
}

/** How many parts a card shows below another agent's; all are shown once the agent is selected. */
const LATEST = 30;

/** The parts of a lane, and its children. */
export function Lane({ place, depth, isSeen = true }: { place: number; depth: number; isSeen?: boolean }) {
  const { filter, matches } = useChosen();
  const whole = useShown(({ view }) => view.lanes[place]?.parts, { isSeen });
  const parts = useMemo(() => (matches?.shown.has(place) === false ? undefined : whole?.filter((part) => isShown(filter, part))), [whole, filter, matches, place]);
  const all = useShown(({ view }) => childrenAt(view, place));
  const children = useMemo(() => (matches ? all.filter((child) => matches.onPath.has(child)) : all), [all, matches]);
  // The calls of the children, which are known once and do not change.
  const calls = useShown(({ view }) => children.map((child) => callOf(view, child) ?? "").join("\n")).split("\n");
  const hidden = depth === 0 ? 0 : Math.max(0, (parts?.length ?? 0) - LATEST);
  const groups = grouped((parts ?? []).slice(hidden));
  const shown = new Set<string>();
  return (
    <>
      {hidden > 0 && <p class="muted">{hidden} earlier parts: open the agent to see them.</p>}
      {groups.map((group) => {
        const ids = new Set(group.map((part) => part.id));
        group.forEach((part) => shown.add(part.id));
        const spawned = children.filter((_, n) => ids.has(calls[n]!));
        return (
          <div key={group[0]!.id} class="parts">
            {group.map((part) => <PartView key={part.id} part={part} isRoot={depth === 0} />)}
            {spawned.length > 0 && <Cards places={spawned} depth={depth + 1} />}
          </div>
        );
      })}
      <Cards places={children.filter((_, n) => !shown.has(calls[n]!))} depth={depth + 1} />
    </>
  );
}

function Cards({ places, depth }: { places: readonly number[]; depth: number }) {
  return places.length === 0 ? null : <div class="children">{places.map((place) => <Card key={place} place={place} depth={depth} />)}</div>;
}

/** Calls that follow each other are one group, so that their children stand side by side. */
function grouped(parts: readonly Part[]): Part[][] {
  const groups: Part[][] = [];
  for (const part of parts) {
    // An agent that is done says so in its head.
    if (part.kind === "end" && part.outcome === "success") continue;
    const group = groups.at(-1);
    if (part.kind === "call" && group?.[0]!.kind === "call") group.push(part);
    else groups.push([part]);
  }
  return groups;
}

interface PartProps {
  part: Part;
  isRoot: boolean;
}

/**
 * A part is drawn again only if it has changed: a long lane has hundreds, of which the last one
 * grows.
 */
export class PartView extends Component<PartProps> {
  override shouldComponentUpdate(next: PartProps): boolean {
    return next.part !== this.props.part;
  }

  render({ part, isRoot }: PartProps) {
    return <Kind part={part} isRoot={isRoot} />;
  }
}

function Kind({ part, isRoot }: PartProps) {
  switch (part.kind) {
    case "text":
      return <Said part={part} />;
    case "thinking":
      return <Thought part={part} />;
    case "call":
      return <Call part={part} />;
    case "data":
      return <Data part={part} />;
    case "message":
      return <Sent part={part} isRoot={isRoot} />;
    case "note":
      return <Note part={part} />;
    case "end":
      return <End part={part} />;
  }
}

const Said = ({ part }: { part: TextPart }) => (
  <div class={part.isOpen ? "said open" : "said"}><Markdown text={part.text} /></div>
);

const Thought = ({ part }: { part: TextPart }) => (
  <details class="thought"><summary>{part.isOpen ? "thinking… " : "thought "}<span class="muted">{firstLine(part.text, 80)}</span></summary><Markdown text={part.text} /></details>
);

const CALLS: Record<CallPart["state"], State> = {
  writing: { sign: "◌", word: "being written", tone: "busy" },
  waiting: { sign: "◷", word: "waits", tone: "calm" },
  running: { sign: "◈", word: "running", tone: "busy" },
  success: { sign: "✔", word: "done", tone: "good" },
  error: { sign: "✖", word: "failed", tone: "bad" },
  interrupted: { sign: "■", word: "interrupted", tone: "calm" },
  denied: { sign: "⊘", word: "denied", tone: "bad" },
};

const WITHDRAWN: State = { sign: "■", word: "request withdrawn", tone: "calm" };

function Call({ part }: { part: CallPart }) {
  const isBackground = part.state === "running" && part.durationMs !== undefined;
  const state = isBackground ? { sign: "◐", word: "in the background", tone: "busy" as const }
    : part.isWithdrawn ? WITHDRAWN : CALLS[part.state];
  return (
    <details class="call">
      <summary>
        <StateChip state={state} /> <b>{visible(part.name)}</b> <span class="muted">{brief(part.arguments)}</span>
        {part.durationMs !== undefined && <span class="elapsed">{duration(part.durationMs)}</span>}
      </summary>
      <h3>Arguments</h3>
      <pre class="plain" dir="auto">{visible(part.arguments) || "none"}</pre>
      {part.result && <><h3>Result</h3><Output text={part.result} /></>}
      {part.data.map((block, n) => <Block key={n} block={block} />)}
    </details>
  );
}

/** The values of the arguments in one line. */
function brief(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    const values = typeof value === "object" && value !== null ? Object.values(value) : [value];
    return firstLine(values.map((inner) => (typeof inner === "string" ? inner : JSON.stringify(inner))).join(" · "), 90);
  } catch {
    return firstLine(text, 90);
  }
}

function Block({ block }: { block: ContentBlock }) {
  if ("text" in block) return <Output text={block.text} />;
  if (!("mediaType" in block)) return null;
  if ("base64" in block.source) return <Picture mediaType={block.mediaType} base64={block.source.base64} />;
  if ("stored" in block.source) return <Stored mediaType={block.mediaType} data={block.source.stored} />;
  return <p class="muted">{visible(block.mediaType)} at {visible(block.source.url)}</p>;
}

/** Data that is stored beside the events: a picture is read from the server. */
function Stored({ mediaType, data }: { mediaType: string; data: StoredData }) {
  const { session } = useDesk();
  const [base64, setBase64] = useState<string>();
  useEffect(() => {
    const stop = new AbortController();
    const read = async () => setBase64(await base64Of(await session.server.data(session.id, data, stop.signal)));
    // What can't be read has its size in its place.
    if (IMAGE.test(mediaType)) read().catch(() => undefined);
    return () => stop.abort();
  }, [session, mediaType, data.sha256]);
  return base64 === undefined ? <Size mediaType={mediaType} bytes={data.bytes} /> : <Picture mediaType={mediaType} base64={base64} />;
}

const Data = ({ part }: { part: DataPart }) =>
  part.isOpen ? <p class="muted">{visible(part.mediaType)}, {part.base64.length} characters so far</p> : <Picture mediaType={part.mediaType} base64={part.base64} />;

const IMAGE = /^image\/(png|jpeg|gif|webp)$/;

const Size = ({ mediaType, bytes }: { mediaType: string; bytes: number }) => <p class="muted">{visible(mediaType)}, {bytes} bytes</p>;

/** An image of a kind that can't contain a script or a link; the size of anything else. */
function Picture({ mediaType, base64 }: { mediaType: string; base64: string }) {
  if (!IMAGE.test(mediaType)) return <Size mediaType={mediaType} bytes={Math.ceil((base64.length * 3) / 4)} />;
  return <img src={`data:${mediaType};base64,${base64}`} alt={`${mediaType} from a model or a tool`} />;
}

const senderOf = (mode: string): string => (mode === "input" ? "you" : mode === "task" ? mode : `message · ${mode}`);

function Sent({ part, isRoot }: { part: MessagePart; isRoot: boolean }) {
  const text = textOf(part.message.content);
  if (part.mode === "task" && !isRoot) {
    return <details class="task"><summary>Task <span class="muted">{firstLine(text, 90)}</span></summary><Markdown text={text} /></details>;
  }
  const attached = part.message.content.filter((block) => "mediaType" in block);
  return (
    <div class="sent">
      <span class="muted">{senderOf(part.mode)}</span>
      <Markdown text={text} />
      {attached.map((block, n) => <Block key={n} block={block} />)}
    </div>
  );
}

const Note = ({ part }: { part: NotePart }) => (
  <details class="note"><summary>{visible(part.title)} <span class="muted">{firstLine(part.text, 80)}</span></summary><pre class="plain" dir="auto">{visible(part.text)}</pre></details>
);

const End = ({ part }: { part: EndPart }) => (
  <p class={part.outcome === "suspended" ? "ended ask" : "ended"}>
    <b>{part.outcome.replace("_", " ")}</b> after {duration(part.durationMs)}{part.error && `: ${visible(part.error.message)}`}{part.outcome === "suspended" && ": it waits for its caller"}
  </p>
);
