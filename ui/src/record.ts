// A session of a record: it is replayed, and nothing can be sent to it.
import type { AgentEvent } from "./fleet/event";
import { lacks } from "./fleet/excerpt";
import { Server } from "./server";
import { Session } from "./session";

export class RecordedSession extends Session {
  constructor(events: readonly AgentEvent[]) {
    super(events[0]?.sessionId ?? "record", Server.NONE);
    events.forEach((event) => this.film.push(event));
    const { first, last } = this.film;
    this.shown.set({ connection: "record", first, last, lacks: lacks(events) });
    this.seek(last);
  }

  /** A record is always replayed; without an event, at its end. */
  override seek(seq = this.film.last): void {
    super.seek(seq);
  }
}
