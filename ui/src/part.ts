// A part of a long record, which is read when the scrubber comes to it: the fleet after an event,
// and the events behind that.
import type { FleetState } from "./api";
import type { AgentEvent } from "./fleet/event";
import { Film } from "./fleet/film";
import { NO_VIEW, ofSnapshot } from "./fleet/view";
import { Problem, type Server } from "./server";

/** How many events are read before the one that is shown, so that the lanes have texts. */
const BEFORE = 2_000;

/** How many events are read at a time behind it. */
const AHEAD = 2_000;

export class Part {
  readonly film: Film;
  #isReading = false;

  private constructor(
    readonly server: Server,
    readonly session: string,
    fleet: FleetState | undefined,
  ) {
    this.film = new Film(fleet ? ofSnapshot(fleet) : NO_VIEW);
  }

  /** Reads the part of a session's record in which an event is. */
  static async around(seq: number, server: Server, session: string, signal: AbortSignal): Promise<Part> {
    const base = Math.max(0, seq - BEFORE);
    const path = `sessions/${encodeURIComponent(session)}/fleet?at=${base}`;
    const part = new Part(server, session, base > 0 ? await server.get<FleetState>(path, signal) : undefined);
    await part.#readTo(seq, signal);
    return part;
  }

  has(seq: number): boolean {
    return this.film.first <= seq && seq <= this.film.last;
  }

  /** Reads on if the event is near the end of the part; `last` is the last event of the record. */
  async extend(seq: number, last: number, signal: AbortSignal): Promise<void> {
    const to = Math.min(last, this.film.last + AHEAD);
    if (this.#isReading || seq < this.film.last - AHEAD / 2 || to <= this.film.last) return;
    this.#isReading = true;
    await this.#readTo(to, signal).finally(() => (this.#isReading = false));
  }

  async #readTo(seq: number, signal: AbortSignal): Promise<void> {
    for await (const event of eventsOf(this.server, this.session, this.film.last, seq, signal)) this.film.push(event);
  }
}

/** Reads the events of a session behind one of them, up to another one. */
export async function* eventsOf(server: Server, session: string, after: number, to: number, signal: AbortSignal): AsyncGenerator<AgentEvent> {
  const stream = after < to ? await server.events(session, after, signal) : undefined;
  if (!stream) return;
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Problem(0, "cut", "the stream was cut");
      if (value.event === "end") return;
      const event = JSON.parse(value.data) as AgentEvent;
      if (event.type === "GAP") throw new Problem(410, "gap", "the events are missing");
      if (event.seq <= to) yield event;
      if (event.seq >= to) return;
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}
