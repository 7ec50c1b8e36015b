// The sessions of the server: found by id, with their state; and a new one.
import { useEffect, useState } from "preact/hooks";
import type { SessionView } from "../api";
import type { Server } from "../server";
import { useDesk } from "../desk";
import { writeRoute } from "../route";
import { visible } from "./text";

const EVERY = 3000;

/** Reads the sessions, the latest first. */
async function read(server: Server, signal?: AbortSignal): Promise<SessionView[]> {
  const { items } = await server.get<{ items: SessionView[] }>("sessions", signal);
  return items.toSorted((a, b) => b.updated_at.localeCompare(a.updated_at));
}

/** The latest session; a new one if there is none. */
export const latest = (server: Server): Promise<string> => read(server).then(([first]) => first?.id ?? newName(), newName);

export function useSessions(server: Server): readonly SessionView[] | undefined {
  const [sessions, setSessions] = useState<readonly SessionView[]>();
  useEffect(() => {
    const stop = new AbortController();
    // A list that can't be read stays as it is; the session's own state tells why.
    const look = () => read(server, stop.signal).then(setSessions, () => undefined);
    void look();
    const timer = setInterval(() => !document.hidden && void look(), EVERY);
    return () => {
      clearInterval(timer);
      stop.abort();
    };
  }, [server]);
  return sessions;
}

/** A name for a new session that sorts by its time. */
const newName = (): string => `page-${new Date().toISOString().slice(0, 19).replace(/[-:]/g, "")}`;

export function Sessions() {
  const { id: current, server } = useDesk().session;
  const sessions = useSessions(server);
  const [search, setSearch] = useState("");
  const found = (sessions ?? []).filter(({ id, state }) => `${id} ${state}`.toLowerCase().includes(search.toLowerCase()));
  return (
    <>
      <div class="row pad">
        <input type="search" aria-label="find a session" placeholder="Find a session" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        <button type="button" onClick={() => (location.hash = writeRoute({ session: newName() }))}>New</button>
      </div>
      <ul class="sessions" aria-label="sessions">
        {found.map(({ id, state, runs }) => (
          <li key={id}>
            <a href={`${location.pathname}${writeRoute({ session: id })}`} aria-current={id === current ? "page" : undefined}>
              <span class="who">{visible(id)}</span> <span class="muted">{state} · {runs} {runs === 1 ? "run" : "runs"}</span>
            </a>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="muted pad">{sessions === undefined ? "Loading." : "No session."}</p>}
    </>
  );
}
