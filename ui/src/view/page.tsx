// The page of a server: asks for a token if one is required, and opens the session that the address
// names. A document with a record has no server, and shows the record.
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { LiveSession } from "../live";
import { readRoute, writeRoute, type Route } from "../route";
import { Problem, type Server } from "../server";
import type { Session } from "../session";
import { setToken } from "../token";
import { Desk } from "./desk";
import { Fleets } from "./fleets";
import { latest } from "./sessions";

export function Page({ server }: { server: Server }) {
  const [isAllowed, setAllowed] = useState<boolean>();
  const check = useCallback(async () => {
    const error: unknown = await server.get("agents").then(() => undefined, (reason: unknown) => reason);
    setAllowed(!(error instanceof Problem && (error.status === 401 || error.status === 403)));
  }, [server]);
  const forbid = useCallback(() => setAllowed(false), []);
  useEffect(() => void check(), [check]);
  if (isAllowed === undefined) return <p class="pad" role="status">Connecting.</p>;
  return isAllowed ? <Open server={server} onUnauthorised={forbid} /> : <Login onToken={check} />;
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

interface OpenProps {
  server: Server;
  onUnauthorised: () => void;
}

/** Opens what the address names: a session, or all that are active; the latest session without one. */
function Open({ server, onUnauthorised }: OpenProps) {
  const route = useRoute();
  const { session: id, isLive = false } = route;
  const session = useMemo(() => (id === undefined || isLive ? undefined : new LiveSession(id, server)), [id, isLive, server]);
  useEffect(() => () => session?.close(), [session]);
  useEffect(() => {
    if (id === undefined && !isLive) void latest(server).then((first) => goTo({ session: first }));
  }, [id, isLive, server]);
  if (isLive) return <Fleets server={server} onUnauthorised={onUnauthorised} />;
  if (!session) return <p class="pad" role="status">Connecting.</p>;
  return <Addressed session={session} route={route} onUnauthorised={onUnauthorised} />;
}

/** Shows a record, at the moment that the address names. */
export function Recorded({ session }: { session: Session }) {
  return <Addressed session={session} route={{ ...useRoute(), session: session.id }} onUnauthorised={() => {}} />;
}

function Addressed({ session, route, onUnauthorised }: { session: Session; route: Route; onUnauthorised: () => void }) {
  const go = useCallback((change: Partial<Route>) => goTo({ ...readRoute(location.hash), session: session.id, ...change }), [session]);
  return <Desk key={session.id} session={session} route={route} go={go} isPage onUnauthorised={onUnauthorised} />;
}
