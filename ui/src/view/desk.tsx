// A session with all its parts: the sessions and the tree, the lanes, what needs a person, the
// timeline and the scrubber.
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { DeskContext, hasSessions, useCancelling, useDesk, useLink, useShown, wasRead, type Notice } from "../desk";
import { ROOT, type Key } from "../fleet/event";
import type { Filter } from "../fleet/filter";
import { agentKey } from "../fleet/fleet";
import { nameOf, parentOf, placeOf } from "../fleet/view";
import type { Route } from "../route";
import type { Session } from "../session";
import { Store, usePart } from "../store";
import { Announcer } from "./announcer";
import { Card, Follow, Lane } from "./card";
import { Compare } from "./compare";
import { Composer, useAgents } from "./composer";
import { FilterBar, Filtered } from "./filter";
import { Banners, Head } from "./head";
import { Main } from "./main";
import { Replay } from "./replay";
import { Sessions } from "./sessions";
import { Background, Details, NeedsYou } from "./side";
import { visible } from "./text";
import { Timeline } from "./timeline";
import { Tree } from "./tree";
import { CANCELLING, StateChip, stateOf } from "./words";

const TABS = ["Agents", "Lane", "Timeline", "Needs you"] as const;
type Tab = (typeof TABS)[number];

interface DeskProps {
  session: Session;
  route: Route;
  go: (change: Partial<Route>) => void;
  isPage?: boolean;
  onUnauthorised: () => void;
}

const NO_FILTER: Filter = {};

export function Desk({ session, route, go, isPage = false, onUnauthorised }: DeskProps) {
  const [tab, setTab] = useState<Tab>("Lane");
  const selected = route.agent ?? ROOT;
  const select = useCallback((key: Key) => {
    go({ agent: key, seq: undefined });
    setTab("Lane");
  }, [go]);
  const notices = useMemo(() => new Store<{ notice?: Notice | undefined }>({}), []);
  const desk = { session, selected, select, route, go, isPage, notices };
  return (
    <DeskContext.Provider value={desk}>
      <Moment seq={route.seq} />
      <Watch onUnauthorised={onUnauthorised} />
      <div class="desk" data-tab={tab}>
        <Head />
        <Banners />
        {route.compare ? <Compare pair={route.compare} /> : <Parts tab={tab} setTab={setTab} />}
      </div>
      <Announcer />
      <NoticeBar />
    </DeskContext.Provider>
  );
}

function Parts({ tab, setTab }: { tab: Tab; setTab: (tab: Tab) => void }) {
  const desk = useDesk();
  const link = useLink();
  return (
    <>
      <nav class="tabs" aria-label="parts of the page">
        {TABS.map((one) => <button key={one} type="button" aria-pressed={one === tab} onClick={() => setTab(one)}>{link && one === "Needs you" ? "Figures" : one}{one === "Needs you" && <Count />}</button>)}
      </nav>
      <Filtered filter={desk.route.filter ?? NO_FILTER}>
        <Main class="main">
          <section class="nav" aria-label={hasSessions(desk) ? "sessions and agents" : "agents"}>
            {hasSessions(desk) && <><h2>Sessions</h2><Sessions /></>}
            <h2>Agents</h2>
            <Tree />
          </section>
          <Middle />
          <section class="side" aria-label="tasks and figures">
            {!link && <NeedsYou />}
            <Background />
            <Details />
          </section>
        </Main>
        <footer class="foot">
          <Timeline />
          <Replay />
        </footer>
      </Filtered>
    </>
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
  const { session, isPage } = useDesk();
  const connection = useShown((shown) => shown.connection);
  const count = useCount();
  useEffect(() => {
    if (connection === "unauthorised") onUnauthorised();
  }, [connection, onUnauthorised]);
  useEffect(() => {
    if (isPage) document.title = `${count > 0 ? `(${count}) ` : ""}${session.id} · Mainstem`;
  }, [count, session, isPage]);
  return null;
}

/** A reader with a link can't do what an agent waits for. */
const useCount = (): number => useShown(({ view, link }) => (link ? 0 : Object.keys(view.fleet.confirmations).length + view.external.length));

function Count() {
  const count = useCount();
  return count > 0 ? <> ({count})</> : null;
}

function Middle() {
  const { session, selected, select } = useDesk();
  const link = useLink();
  const place = useShown(({ view }) => placeOf(view.fleet, selected));
  const state = useShown(({ view }) => view.fleet.agents[place] && stateOf(view.fleet.agents[place]));
  const isCancelling = useCancelling(selected);
  const isKnown = useShown(wasRead);
  const { fleet } = session.shown.value.view;
  const agent = fleet.agents[place];
  const parent = agent && parentOf(fleet, agent);
  return (
    <section class="middle" aria-label="the selected agent">
      {agent?.source && (
        <div class="row crumbs">
          {parent && <button type="button" onClick={() => select(agentKey(parent))}>↑ {visible(nameOf(parent))}</button>}
          {state && <StateChip state={isCancelling ? CANCELLING : state} />}
        </div>
      )}
      <FilterBar />
      <Follow key={selected} class="lane" tabIndex={0} role="group" aria-label="lane of the selected agent">
        {agent ? (agent.source ? <Card place={place} depth={0} /> : <Lane place={place} depth={0} />) : isKnown ? <Empty /> : <p class="empty" role="status">Connecting.</p>}
      </Follow>
      {!link && <Composer />}
    </section>
  );
}

function Empty() {
  return useLink() ? <p class="empty">Nothing has run in this session.</p> : <Invitation />;
}

function Invitation() {
  const { server } = useDesk().session;
  const agents = useAgents(server);
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
  const { notices } = useDesk();
  const notice = usePart(notices, (value) => value.notice);
  const close = () => notices.set({ notice: undefined });
  useEffect(() => {
    if (!notice || notice.isError) return undefined;
    const timer = setTimeout(close, 4000);
    return () => clearTimeout(timer);
  }, [notice, notices]);
  return (
    <div class="notices" role={notice?.isError ? "alert" : "status"}>
      {notice && <p class={notice.isError ? "notice error" : "notice"}>{visible(notice.text)} <button type="button" onClick={close} aria-label="close the message">✕</button></p>}
    </div>
  );
}
