// One session as the page has it: its record so far, and the view at the last event or at an
// earlier one.
import type { LinkView, SessionView } from "./api";
import type { AgentEvent, Key } from "./fleet/event";
import { excerptOf } from "./fleet/excerpt";
import { Film } from "./fleet/film";
import { agentKey } from "./fleet/fleet";
import { NO_VIEW, type View } from "./fleet/view";
import type { Server } from "./server";
import { Store } from "./store";

/** The state of the connection; a `record` has none. */
export type Connection = "connecting" | "live" | "reconnecting" | "unauthorised" | "missing" | "over" | "record";

export interface Shown {
  /** What is drawn: the last event's view, or that of the scrubber's event. */
  view: View;
  connection: Connection;
  /** How often the connection was tried again. */
  attempt: number;
  /** The event that the scrubber is at; absent while the page is live. */
  replay?: number;
  /** What is said while the event of the scrubber is not shown yet, or can't be. */
  seeking?: string | undefined;
  /** The first and the last event that can be shown. */
  first: number;
  last: number;
  /** What the server says of the session. */
  session?: SessionView;
  /** The link with which the session is read; absent with a token of the server. */
  link?: LinkView | undefined;
  /** What the record lacks, if it is known to be a part. */
  lacks?: string | undefined;
  /** The agents whose cancel the server has accepted, until they end; a task without an agent by its id. */
  cancelling: ReadonlySet<Key>;
  /** When the last event arrived, in milliseconds since 1970. */
  arrivedAt: number;
}

export class Session {
  readonly shown = new Store<Shown>({ view: NO_VIEW, connection: "connecting", attempt: 0, first: 0, last: 0, cancelling: new Set(), arrivedAt: Date.now() });
  protected film = new Film(NO_VIEW);

  constructor(
    readonly id: string,
    readonly server: Server,
  ) {}

  close(): void {}

  /** Tries to connect at once, after a run has begun or a token was given. */
  reconnect(): void {}

  get events(): readonly AgentEvent[] {
    return this.film.events;
  }

  /** Returns the events of a range; of a record that is long, the server has them. */
  range(from: number, to: number): Promise<AgentEvent[]> {
    return Promise.resolve(excerptOf(this.events, { from, to }));
  }

  eventAfter(seq: number): AgentEvent | undefined {
    return this.film.after(seq + 1);
  }

  /** Shows the view at an event; without one, the live view. */
  seek(seq?: number): void {
    const replay = seq === undefined ? undefined : Math.max(this.film.first, Math.min(seq, this.film.last));
    this.shown.set({ replay, view: replay === undefined ? this.live() : this.film.at(replay) });
  }

  /** Shows an agent, and those below it, as being cancelled until it ends. */
  markCancelling(key: Key): void {
    const isOver = this.live().fleet.agents.some((agent) => agentKey(agent) === key && agent.outcome !== undefined);
    if (!isOver) this.shown.set({ cancelling: new Set(this.shown.value.cancelling).add(key) });
  }

  /** The view of the last event. */
  protected live(): View {
    return this.film.now;
  }
}
