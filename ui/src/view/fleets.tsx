// The screen of all active sessions: what needs a person first, then what runs, then
// what has ended.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ServerView, Use } from "../api";
import { Fleets as Followed, type Entry } from "../fleets";
import { agentKey, totalTokens } from "../fleet/fleet";
import { nameOf, rootOf } from "../fleet/view";
import { writeRoute } from "../route";
import type { Server } from "../server";
import { usePart } from "../store";
import { visible } from "./text";
import { Elapsed, stateOf, StateChip, tokens, type State } from "./words";

/** How many agents of a session are listed. */
const LISTED = 6;

const NEEDS_YOU: State = { sign: "?", word: "needs you", tone: "ask" };
const ACTIVE: State = { sign: "◉", word: "active", tone: "busy" };

interface Props {
  server: Server;
  onUnauthorised: () => void;
}

export function Fleets({ server, onUnauthorised }: Props) {
  const fleets = useMemo(() => new Followed(server), [server]);
  useEffect(() => () => fleets.close(), [fleets]);
  const { connection, attempt, entries, live, followed, server: limits } = usePart(fleets.shown, (shown) => shown);
  const [search, setSearch] = useState("");
  const [isOnlyMine, setOnlyMine] = useState(false);
  useEffect(() => {
    if (connection === "unauthorised") onUnauthorised();
  }, [connection, onUnauthorised]);
  const asking = entries.filter(needsYou).length;
  useEffect(() => {
    document.title = `${asking > 0 ? `(${asking}) ` : ""}Live sessions · Mainstem`;
  }, [asking]);
  const found = entries.filter((entry) => has(entry, search.trim().toLowerCase()) && (!isOnlyMine || needsYou(entry)));
  const groups = [
    { title: "Needs you", of: found.filter(needsYou) },
    { title: "Active", of: found.filter((entry) => !needsYou(entry) && !entry.hasLeft) },
    { title: "Ended", of: found.filter((entry) => entry.hasLeft) },
  ].filter(({ of }) => of.length > 0);
  return (
    <div class="fleets">
      <header class="head">
        <h1>Mainstem</h1>
        <span>Live sessions</span>
        <span class={`chip ${connection === "live" ? "good" : "calm"}`}>{connection === "live" ? "LIVE" : connection}</span>
        <span role="status">{live} active{asking > 0 && `, ${asking} ${asking === 1 ? "needs" : "need"} you`}</span>
        {limits && <Limits limits={limits} />}
        <span class="grow" />
        <a href={`${location.pathname}#`}>Latest session</a>
      </header>
      {connection === "reconnecting" && <p class="banner" role="status">The connection is lost. Trying again, attempt {attempt}.</p>}
      {live > followed && connection === "live" && <p class="banner">{followed} of {live} sessions are shown. Others follow as these become idle.</p>}
      <main class="pad">
        <div class="row filters" role="group" aria-label="filter">
          <input type="search" aria-label="find a live session" placeholder="Find by session, agent, tenant or node" maxLength={200} value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
          <button type="button" aria-pressed={isOnlyMine} onClick={() => setOnlyMine(!isOnlyMine)}>Only what needs you</button>
        </div>
        {groups.map(({ title, of }) => (
          <section key={title} aria-label={title}>
            <h2>{title} ({of.length})</h2>
            <div class="children">{of.map((entry) => <Session key={entry.name} entry={entry} />)}</div>
          </section>
        ))}
        {groups.length === 0 && <p class="muted">{entries.length > 0 ? "The filter shows no session." : connection === "connecting" ? "Connecting." : "No session is active."}</p>}
      </main>
    </div>
  );
}

const needsYou = ({ fleet, hasLeft }: Entry): boolean =>
  !hasLeft && (Object.keys(fleet.confirmations).length > 0 || fleet.agents.some(({ phase, outcome }) => phase === "asking" && !outcome));

/** Whether a session, one of its agents, its tenant or its node has a text in its name. */
function has({ id, tenant, node, fleet }: Entry, text: string): boolean {
  const names = [id, tenant, node, ...fleet.agents.map(nameOf)];
  return text === "" || names.some((name) => name?.toLowerCase().includes(text));
}

function Limits({ limits: { node, runs, sessions, readers } }: { limits: ServerView }) {
  return (
    <span class="muted figures" aria-label="limits of this server">
      {node && <>node {visible(node)} · </>}
      <Limit of="runs" use={runs} /> · <Limit of="sessions open" use={sessions} /> · <Limit of="readers" use={readers} />
    </span>
  );
}

/** How much of a limit is in use; the tenants are in its title. */
function Limit({ of, use: { used, most, by_tenant: tenants } }: { of: string; use: Use }) {
  const title = Object.entries(tenants ?? {}).map(([name, count]) => `${name || "without a tenant"}: ${count}`).join(", ");
  return <span title={title}>{used} of {most} {of}</span>;
}

function Session({ entry: { id, tenant, node, fleet, hasLeft } }: { entry: Entry }) {
  const root = rootOf(fleet);
  const active = fleet.agents.filter((agent) => agent.outcome === undefined);
  const state = needsYou({ name: "", id, fleet, hasLeft }) ? NEEDS_YOU : hasLeft && root ? stateOf(root) : ACTIVE;
  const tasks = Object.values(fleet.tasks).filter((status) => status === "running" || status === "pending").length;
  return (
    <section class={`card ${state.tone}`} aria-label={tenant === undefined ? `session ${id}` : `session ${id} of ${tenant}`}>
      <header>
        <a class="who" href={`${location.pathname}${writeRoute({ session: id, tenant })}`}>{visible(id)}</a>
        <StateChip state={state} />
        {tenant !== undefined && <span class="chip">{visible(tenant)}</span>}
        {node !== undefined && <span class="chip">{visible(node)}</span>}
        <span class="figures">
          {root && <Elapsed from={root.startedAt} to={root.endedAt ?? undefined} until={hasLeft ? fleet.at : undefined} />}
          <span>{tokens(totalTokens(fleet.usage))}</span>
        </span>
      </header>
      <div class="body">
        <p class="muted">{fleet.agents.length} {fleet.agents.length === 1 ? "agent" : "agents"}{active.length > 0 && `, ${active.length} running`}{tasks > 0 && `, ${tasks} in the background`}</p>
        <ul>{active.slice(0, LISTED).map((agent) => <Agent key={agentKey(agent)} agent={agent} />)}</ul>
        {active.length > LISTED && <p class="muted">{active.length - LISTED} more running</p>}
      </div>
    </section>
  );
}

function Agent({ agent }: { agent: Entry["fleet"]["agents"][number] }) {
  const state = stateOf(agent);
  return (
    <li class={`line ${state.tone}`}>
      <span class="sign" aria-hidden="true">{state.sign}</span> <span class="who">{visible(nameOf(agent))}</span> <span class="muted">{state.word}{agent.tools.length > 0 && `: ${[...new Set(agent.tools.map(({ name }) => visible(name)))].join(", ")}`}</span>
    </li>
  );
}
