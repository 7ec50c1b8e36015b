// The sessions of the server, those whose run began last: found by id, with their state; and a new
// one.
import { useEffect, useState } from "preact/hooks";
import type { SessionView } from "../api";
import type { Server } from "../server";
import { useDesk } from "../desk";
import { writeRoute } from "../route";
import { visible } from "./text";

const EVERY = 3000;

interface Page {
  items: SessionView[];
  /** The cursor of the next page, if there is one. */
  next?: string;
}

/** Reads the first page of the sessions with this text in their ids. */
const read = (server: Server, search: string, signal?: AbortSignal): Promise<Page> =>
  server.get(`sessions${search && `?search=${encodeURIComponent(search)}`}`, signal);

/** The latest session; a new one if there is none. */
export const latest = (server: Server): Promise<string> => read(server, "").then(({ items: [first] }) => first?.id ?? newName(), newName);

export function useSessions(server: Server, search = ""): Page | undefined {
  const [sessions, setSessions] = useState<Page>();
  useEffect(() => {
    const stop = new AbortController();
    // A list that can't be read stays as it is; the session's own state tells why.
    const look = () => read(server, search, stop.signal).then(setSessions, () => undefined);
    void look();
    const timer = setInterval(() => !document.hidden && void look(), EVERY);
    return () => {
      clearInterval(timer);
      stop.abort();
    };
  }, [server, search]);
  return sessions;
}

/** A name for a new session that sorts by its time. */
const newName = (): string => `page-${new Date().toISOString().slice(0, 19).replace(/[-:]/g, "")}`;

export function Sessions() {
  const { id: current, server } = useDesk().session;
  const [search, setSearch] = useState("");
  const addressOf = (session: string) => writeRoute({ session, tenant: server.tenant });
  const sessions = useSessions(server, search.trim());
  const found = sessions?.items ?? [];
  return (
    <>
      <div class="row pad">
        <input type="search" aria-label="find a session" placeholder="Find a session" maxLength={200} value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        <button type="button" onClick={() => (location.hash = addressOf(newName()))}>New</button>
        <a href={`${location.pathname}${writeRoute({ isLive: true })}`}>Live</a>
      </div>
      <ul class="sessions" aria-label="sessions">
        {found.map(({ id, state, runs }) => (
          <li key={id}>
            <a href={`${location.pathname}${addressOf(id)}`} aria-current={id === current ? "page" : undefined}>
              <span class="who">{visible(id)}</span> <span class="muted">{state} · {runs} {runs === 1 ? "run" : "runs"}</span>
            </a>
          </li>
        ))}
      </ul>
      {sessions?.next && <p class="muted pad">There are more: find them by id.</p>}
      {found.length === 0 && <p class="muted pad">{sessions === undefined ? "Loading." : "No session."}</p>}
    </>
  );
}
