// The page of a server: asks for a token if one is required, and opens the session that the address
// names. With a link in the address, it shows the session of the link. A document with a record has
// no server, and shows the record.
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import type { LinkView } from "../api";
import { LiveSession } from "../live";
import { readRoute, writeRoute, type Route } from "../route";
import { Problem, Server } from "../server";
import type { Session } from "../session";
import { setToken, token } from "../token";
import { Desk } from "./desk";
import { Fleets } from "./fleets";
import { latest } from "./sessions";

/** The page of the server at an address. */
export function Page({ base }: { base: URL }) {
  const route = useRoute();
  const { link, tenant } = route;
  const server = useMemo(() => (link === undefined ? Server.at(base, token, tenant) : Server.at(base, () => link)), [base, link, tenant]);
  return link === undefined ? <Guarded server={server} route={route} /> : <Shared key={link} server={server} route={route} />;
}

interface Routed {
  server: Server;
  route: Route;
}

/** Asks for a token if one is required. */
function Guarded({ server, route }: Routed) {
  const [isAllowed, setAllowed] = useState<boolean>();
  const check = useCallback(async () => {
    const error: unknown = await server.get("agents").then(() => undefined, (reason: unknown) => reason);
    setAllowed(!(error instanceof Problem && (error.status === 401 || error.status === 403)));
  }, [server]);
  const forbid = useCallback(() => setAllowed(false), []);
  useEffect(() => void check(), [check]);
  if (isAllowed === undefined) return <p class="pad" role="status">Connecting.</p>;
  return isAllowed ? <Open server={server} route={route} onUnauthorised={forbid} /> : <Login onToken={check} />;
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

/** How long to wait before a link is read again, in milliseconds. */
const PAUSE = 5000;

/** Shows the session of a link, whose token the server's requests have. */
function Shared({ server, route }: Routed) {
  const [link, setLink] = useState<LinkView | "over">();
  const end = useCallback(() => setLink("over"), []);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = new AbortController();
    const read = () => server.get<LinkView>("link", stop.signal).then(setLink, (error: unknown) => {
      if (stop.signal.aborted) return;
      if (error instanceof Problem && [401, 403, 404].includes(error.status)) end();
      else timer = setTimeout(read, PAUSE);
    });
    void read();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [server, end]);
  const session = useMemo(() => (link && link !== "over" ? new LiveSession(link.session_id, server, link) : undefined), [link, server]);
  useEffect(() => () => session?.close(), [session]);
  if (link === "over") return <Over />;
  if (!session) return <p class="pad" role="status">Connecting.</p>;
  return <Addressed session={session} route={route} onUnauthorised={end} />;
}

const Over = () => (
  <main class="login">
    <h1>Mainstem</h1>
    <p role="alert">This link has ended or was revoked. Ask whoever sent it for a new one.</p>
  </main>
);

/** Opens what the address names: a session, or all that are active; the latest session without one. */
function Open({ server, route, onUnauthorised }: Routed & { onUnauthorised: () => void }) {
  const { session: id, isLive = false } = route;
  const session = useMemo(() => (id === undefined || isLive ? undefined : new LiveSession(id, server)), [id, isLive, server]);
  useEffect(() => () => session?.close(), [session]);
  useEffect(() => {
    if (id === undefined && !isLive) void latest(server).then((first) => goTo({ session: first, tenant: server.tenant }));
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
  return <Desk key={`${session.server.tenant ?? ""}/${session.id}`} session={session} route={route} go={go} isPage onUnauthorised={onUnauthorised} />;
}
