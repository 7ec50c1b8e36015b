// The sessions of the server: found by id, with their state; and a new one.
import { useEffect, useState } from "preact/hooks";
import type { SessionView } from "../api";
import { get } from "../server";
import { writeRoute } from "../route";
import { visible } from "./text";

const EVERY = 3000;

export function useSessions(isAllowed: boolean): readonly SessionView[] | undefined {
  const [sessions, setSessions] = useState<readonly SessionView[]>();
  useEffect(() => {
    if (!isAllowed) return undefined;
    const stop = new AbortController();
    const read = async () => {
      const list = await get<{ items: SessionView[] }>("sessions", stop.signal).catch(() => undefined);
      if (list) setSessions(list.items.toSorted((a, b) => b.updated_at.localeCompare(a.updated_at)));
    };
    void read();
    const timer = setInterval(() => !document.hidden && void read(), EVERY);
    return () => {
      clearInterval(timer);
      stop.abort();
    };
  }, [isAllowed]);
  return sessions;
}

/** A name for a new session that sorts by its time. */
export const newName = (): string => `page-${new Date().toISOString().slice(0, 19).replace(/[-:]/g, "")}`;

export function Sessions({ sessions, current }: { sessions: readonly SessionView[] | undefined; current: string | undefined }) {
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
