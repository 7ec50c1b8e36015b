// The whole page: its head, the sessions and the tree, the lanes, what needs a person, the timeline
// and the scrubber.
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { DeskContext, notices, SLOW, useDesk, useShown } from "../desk";
import { ROOT, type Key } from "../fleet/event";
import { agentKey, totalTokens } from "../fleet/fleet";
import { costOf, isRunning, nameOf, placeOf, type View } from "../fleet/view";
import { readRoute, writeRoute, type Route } from "../route";
import { get, Problem, setToken } from "../server";
import { Session } from "../session";
import { usePart } from "../store";
import { Announcer } from "./announcer";
import { Card, Follow, Lane } from "./card";
import { Composer, useAgents } from "./composer";
import { Replay } from "./replay";
import { latest, Sessions } from "./sessions";
import { Background, Details, NeedsYou } from "./side";
import { visible } from "./text";
import { Timeline } from "./timeline";
import { Tree } from "./tree";
import { Elapsed, money, StateChip, stateOf, tokens } from "./words";

export function Page() {
  const [isAllowed, setAllowed] = useState<boolean>();
  const check = useCallback(async () => {
    const error: unknown = await get("agents").then(() => undefined, (reason: unknown) => reason);
    setAllowed(!(error instanceof Problem && (error.status === 401 || error.status === 403)));
  }, []);
  const forbid = useCallback(() => setAllowed(false), []);
  useEffect(() => void check(), [check]);
  if (isAllowed === undefined) return <p class="pad" role="status">Connecting.</p>;
  return isAllowed ? <Open onUnauthorised={forbid} /> : <Login onToken={check} />;
}

function Login({ onToken }: { onToken: () => Promise<void> }) {
  const [text, setText] = useState("");
  const [isWrong, setWrong] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setToken(text.trim());
    await onToken();
    setWrong(true);
  };
  return (
    <main class="login">
      <h1>Mainstem</h1>
      <form onSubmit={submit}>
        <label for="token">Token</label>
        <input id="token" type="password" autocomplete="off" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <button class="main" disabled={!text.trim()}>Open</button>
        <p class="muted">The server shows its token when it starts. It stays in this tab.</p>
        {isWrong && <p role="alert" class="error">The server does not accept this token.</p>}
      </form>
    </main>
  );
}

function useRoute(): Route {
  const [route, setRoute] = useState(() => readRoute(location.hash));
  useEffect(() => {
    const changed = () => setRoute(readRoute(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

/** Changes the address without a step in the history. */
function goTo(route: Route): void {
  history.replaceState(null, "", location.pathname + writeRoute(route));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

const TABS = ["Agents", "Lane", "Timeline", "Needs you"] as const;
type Tab = (typeof TABS)[number];

/** Opens the session that the address names; without one, the latest of the server. */
function Open({ onUnauthorised }: { onUnauthorised: () => void }) {
  const route = useRoute();
  if (route.session === undefined) return <Latest />;
  return <Desk key={route.session} id={route.session} agent={route.agent} seq={route.seq} onUnauthorised={onUnauthorised} />;
}

function Latest() {
  useEffect(() => {
    void latest().then((session) => goTo({ session }));
  }, []);
  return <p class="pad" role="status">Connecting.</p>;
}

interface DeskProps {
  id: string;
  agent: Key | undefined;
  seq: number | undefined;
  onUnauthorised: () => void;
}

function Desk({ id, agent, seq, onUnauthorised }: DeskProps) {
  const session = useMemo(() => new Session(id), [id]);
  useEffect(() => () => session.close(), [session]);
  const [tab, setTab] = useState<Tab>("Lane");
  const selected = agent ?? ROOT;
  const select = useCallback((key: Key) => {
    goTo({ session: id, agent: key });
    setTab("Lane");
  }, [id]);
  const desk = useMemo(() => ({ session, selected, select }), [session, selected, select]);
  return (
    <DeskContext.Provider value={desk}>
      <Moment seq={seq} />
      <Watch onUnauthorised={onUnauthorised} />
      <div class="desk" data-tab={tab}>
        <Head />
        <Banner />
        <nav class="tabs" aria-label="parts of the page">
          {TABS.map((one) => <button key={one} type="button" aria-pressed={one === tab} onClick={() => setTab(one)}>{one}{one === "Needs you" && <Count />}</button>)}
        </nav>
        <main>
          <section class="nav" aria-label="sessions and agents">
            <h2>Sessions</h2>
            <Sessions current={id} />
            <h2>Agents</h2>
            <Tree />
          </section>
          <Middle />
          <section class="side" aria-label="tasks and figures">
            <NeedsYou />
            <Background />
            <Details />
          </section>
        </main>
        <footer class="foot">
          <Timeline />
          <Replay />
        </footer>
      </div>
      <Announcer />
      <NoticeBar />
    </DeskContext.Provider>
  );
}

/** Shows the moment that the address names, once the record has it. */
function Moment({ seq }: { seq: number | undefined }) {
  const { session } = useDesk();
  const isThere = useShown(({ last }) => seq !== undefined && last >= seq);
  useEffect(() => {
    if (isThere && seq !== undefined) session.seek(seq);
  }, [session, seq, isThere]);
  return null;
}

/** Asks for a token once the server wants one, and counts in the title what needs a person. */
function Watch({ onUnauthorised }: { onUnauthorised: () => void }) {
  const { session } = useDesk();
  const link = useShown((shown) => shown.link);
  const count = useCount();
  useEffect(() => {
    if (link === "unauthorised") onUnauthorised();
  }, [link, onUnauthorised]);
  useEffect(() => {
    document.title = `${count > 0 ? `(${count}) ` : ""}${session.id} · Mainstem`;
  }, [count, session]);
  return null;
}

const useCount = (): number => useShown(({ view }) => Object.keys(view.fleet.confirmations).length + view.external.length);

function Count() {
  const count = useCount();
  return count > 0 ? <> ({count})</> : null;
}

function rootCost(view: View): number | undefined {
  const lane = view.lanes[placeOf(view.fleet, ROOT)];
  return lane && costOf(lane);
}

function Head() {
  const { session } = useDesk();
  const fleet = useShown(({ view }) => view.fleet, SLOW);
  const run = useShown(({ view }) => view.run);
  const cost = useShown(({ view }) => rootCost(view));
  const until = useShown(({ replay, view }) => (replay === undefined ? undefined : view.fleet.at));
  const queued = useShown((shown) => shown.session?.queued_runs.length ?? 0);
  const running = fleet.agents.filter((agent) => agent.outcome === undefined).length;
  return (
    <header class="head">
      <h1>Mainstem</h1>
      <span class="who">{visible(session.id)}</span>
      <LinkChip />
      {run && <Elapsed from={run.startedAt} to={run.endedAt} until={until} />}
      <span>{fleet.agents.length} {fleet.agents.length === 1 ? "agent" : "agents"}{running > 0 && `, ${running} running`}</span>
      <span>{tokens(totalTokens(fleet.usage))}</span>
      {cost !== undefined && <span>{money(cost)}</span>}
      {fleet.planMode && <span class="chip ask">plan mode</span>}
      {queued > 0 && <span>{queued} queued</span>}
      {fleet.agents.some((agent) => agent.model === "demo") && <span class="chip calm">demo</span>}
    </header>
  );
}

function LinkChip() {
  const replay = useShown((shown) => shown.replay);
  const link = useShown((shown) => shown.link);
  const isActive = useShown(({ view }) => isRunning(view));
  const quiet = useQuiet(isActive);
  if (replay !== undefined) return <span class="chip replaying">REPLAY</span>;
  const words = { connecting: "connecting", live: isActive ? "LIVE" : "idle", reconnecting: "reconnecting", unauthorised: "token required", missing: "new", over: "over" };
  return (
    <>
      <span class={`chip ${link === "live" ? "good" : "calm"}`}>{words[link]}</span>
      {quiet > 0 && link === "live" && <span class="muted">no event for {quiet} s</span>}
    </>
  );
}

/** A run without an event for this long waits for something, in seconds. */
const QUIET = 10;

/** The seconds since the last event of a running session, once they are many. */
function useQuiet(isActive: boolean): number {
  const { session } = useDesk();
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => {
      const passed = Math.floor((Date.now() - session.shown.value.arrivedAt) / 1000);
      setSeconds(isActive && passed >= QUIET ? passed : 0);
    }, 1000);
    return () => clearInterval(timer);
  }, [session, isActive]);
  return seconds;
}

/** What stands between the reader and the live view. */
function Banner() {
  const link = useShown((shown) => shown.link);
  const attempt = useShown((shown) => shown.attempt);
  const seq = useShown(({ view }) => view.fleet.seq, SLOW);
  const replay = useShown((shown) => shown.replay);
  const first = useShown((shown) => shown.first);
  const missed = useShown(({ view }) => view.fleet.missed);
  if (link === "reconnecting") return <p class="banner" role="status">The connection is lost. Trying again, attempt {attempt}; the last event is {seq}.</p>;
  if (replay !== undefined) return <p class="banner" role="status">REPLAY at event {replay}. Actions are disabled.</p>;
  if (first > 0) return <p class="banner">The record before event {first} is not shown.</p>;
  if (missed > 0) return <p class="banner">{missed} events are missing.</p>;
  return null;
}

function Middle() {
  const { session, selected, select } = useDesk();
  const place = useShown(({ view }) => placeOf(view.fleet, selected));
  const state = useShown(({ view }) => view.fleet.agents[place] && stateOf(view.fleet.agents[place]));
  const { fleet } = session.shown.value.view;
  const agent = fleet.agents[place];
  const parent = agent?.source && fleet.agents.find((one) => (one.source?.sessionId ?? fleet.sessionId) === agent.source!.parentSessionId);
  return (
    <section class="middle" aria-label="the selected agent">
      {agent?.source && (
        <div class="row crumbs">
          {parent && <button type="button" onClick={() => select(agentKey(parent))}>↑ {visible(nameOf(parent))}</button>}
          {state && <StateChip state={state} />}
        </div>
      )}
      <Follow key={selected} class="lane" tabIndex={0} role="group" aria-label="lane of the selected agent">
        {agent ? (agent.source ? <Card place={place} depth={0} /> : <Lane place={place} depth={0} />) : <Empty />}
      </Follow>
      <Composer />
    </section>
  );
}

function Empty() {
  const agents = useAgents();
  const listed = agents?.items.filter(({ id, spawnable }) => spawnable || id === agents.runs) ?? [];
  return (
    <div class="empty">
      <p>Nothing has run in this session. Write a task below: every agent that works on it appears here while it works.</p>
      {listed.length > 0 && <dl aria-label="agents of this server">{listed.map(({ id, description }) => <div key={id}><dt>{visible(id)}</dt><dd>{visible(description)}</dd></div>)}</dl>}
    </div>
  );
}

/** What came of the last action; an error stays until it is closed. */
function NoticeBar() {
  const notice = usePart(notices, (value) => value.notice);
  const close = () => notices.set({ notice: undefined });
  useEffect(() => {
    if (!notice || notice.isError) return undefined;
    const timer = setTimeout(close, 4000);
    return () => clearTimeout(timer);
  }, [notice]);
  return (
    <div class="notices" role={notice?.isError ? "alert" : "status"}>
      {notice && <p class={notice.isError ? "notice error" : "notice"}>{visible(notice.text)} <button type="button" onClick={close} aria-label="close the message">✕</button></p>}
    </div>
  );
}
