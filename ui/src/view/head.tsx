// The head of the page: the session with its figures and the state of the connection; and banners
// for what a link shows, and for what stands between the reader and the live view.
import { useEffect, useRef, useState } from "preact/hooks";
import { hasSessions, SLOW, useCancelling, useDesk, useLink, useShown, useUntil } from "../desk";
import { ROOT } from "../fleet/event";
import { totalTokens } from "../fleet/fleet";
import { costOf, isRunning, placeOf, type View } from "../fleet/view";
import { Share } from "./share";
import { visible } from "./text";
import { Elapsed, moment, money, tokens } from "./words";

function rootCost(view: View): number | undefined {
  const lane = view.lanes[placeOf(view.fleet, ROOT)];
  return lane && costOf(lane);
}

export function Head() {
  const desk = useDesk();
  const { session, route, go } = desk;
  const [isSharing, setSharing] = useState(false);
  const shareButton = useRef<HTMLButtonElement>(null);
  const fleet = useShown(({ view }) => view.fleet, SLOW);
  const run = useShown(({ view }) => view.run);
  const cost = useShown(({ view }) => rootCost(view));
  const until = useUntil();
  const queued = useShown((shown) => shown.session?.queued_runs.length ?? 0);
  const running = fleet.agents.filter((agent) => agent.outcome === undefined).length;
  const isComparing = route.compare !== undefined;
  const hasShare = fleet.agents.length > 0 && !isComparing && hasSessions(desk);
  const closeShare = () => {
    setSharing(false);
    shareButton.current?.focus();
  };
  return (<>
    <header class="head">
      <h1>Mainstem</h1>
      <span class="who">{visible(session.id)}</span>
      <ConnectionChip />
      {session.server.tenant !== undefined && <span class="chip">{visible(session.server.tenant)}</span>}
      {run && <Elapsed from={run.startedAt} to={run.endedAt} until={until} />}
      <span>{fleet.agents.length} {fleet.agents.length === 1 ? "agent" : "agents"}{running > 0 && `, ${running} running`}</span>
      <span>{tokens(totalTokens(fleet.usage))}</span>
      {cost !== undefined && <span>{money(cost)}</span>}
      {fleet.planMode && <span class="chip ask">plan mode</span>}
      {queued > 0 && <span>{queued} queued</span>}
      {fleet.agents.some((agent) => agent.model === "demo") && <span class="chip calm">demo</span>}
      <span class="grow" />
      {fleet.agents.length > 0 && !isComparing && <button type="button" onClick={() => go({ compare: {} })}>Compare runs</button>}
      {hasShare && <button ref={shareButton} type="button" aria-expanded={isSharing} onClick={() => setSharing(!isSharing)}>Share</button>}
    </header>
    {hasShare && isSharing && <Share close={closeShare} />}
  </>);
}

function ConnectionChip() {
  const replay = useShown((shown) => shown.replay);
  const connection = useShown((shown) => shown.connection);
  const isActive = useShown(({ view }) => isRunning(view));
  const isCancelling = useCancelling(ROOT);
  const quiet = useQuiet(isActive);
  if (replay !== undefined) return <span class="chip replaying">{connection === "record" ? "RECORD" : "REPLAY"}</span>;
  if (isCancelling && connection === "live") return <span class="chip ask">cancelling</span>;
  const words = { connecting: "connecting", live: isActive ? "LIVE" : "idle", reconnecting: "reconnecting", unauthorised: "token required", missing: "new", over: "over", record: "record" };
  return (
    <>
      <span class={`chip ${connection === "live" ? "good" : "calm"}`}>{words[connection]}</span>
      {quiet > 0 && connection === "live" && <span class="muted">no event for {quiet} s</span>}
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

export function Banners() {
  return <div class="banners"><LinkBanner /><Banner /></div>;
}

/** What a link shows, and until when. */
function LinkBanner() {
  const link = useLink();
  if (!link) return null;
  return <p class="banner calm" role="status">Shared session, read only · until {moment(link.expires_at)}{link.through && ` · up to event ${link.through}`}</p>;
}

/** What stands between the reader and the live view. */
function Banner() {
  const connection = useShown((shown) => shown.connection);
  const attempt = useShown((shown) => shown.attempt);
  const seq = useShown(({ view }) => view.fleet.seq, SLOW);
  const replay = useShown((shown) => shown.replay);
  const first = useShown((shown) => shown.first);
  const missed = useShown(({ view }) => view.fleet.missed);
  const lacks = useShown((shown) => shown.lacks);
  if (connection === "record") return <p class="banner" role="status">RECORD at event {replay}. Nothing can be sent to it. {lacks}</p>;
  if (connection === "reconnecting") return <p class="banner" role="status">The connection is lost. Trying again, attempt {attempt}; the last event is {seq}.</p>;
  if (replay !== undefined) return <p class="banner" role="status">REPLAY at event {replay}. Actions are disabled.</p>;
  if (first > 0) return <p class="banner" role="status">The record before event {first} is not shown.</p>;
  if (missed > 0) return <p class="banner" role="status">{missed} events are missing.</p>;
  return null;
}
