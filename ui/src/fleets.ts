// All active sessions, as `GET /v1/live` sends them; also after the connection was lost.
import type { FleetState, LiveFrame, ServerView } from "./api";
import type { AgentEvent } from "./fleet/event";
import { apply, indexed, type Places } from "./fleet/fleet";
import { Problem, type Server } from "./server";
import type { Connection } from "./session";
import { Store } from "./store";

/** How often the screen changes at most, in milliseconds. */
const PAUSE = 200;

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 5000;

/** How many sessions are shown after they have ended their work. */
const MOST_LEFT = 20;

export interface Entry {
  /** The name of the session among those of all tenants. */
  name: string;
  id: string;
  tenant?: string | undefined;
  node?: string | undefined;
  fleet: FleetState;
  hasLeft: boolean;
}

export interface ShownFleets {
  connection: Connection;
  attempt: number;
  /** Those active, then those that have left, the latest first. */
  entries: readonly Entry[];
  /** How many sessions are active, and how many of them the stream has. */
  live: number;
  followed: number;
  server?: ServerView | undefined;
}

const nameOf = (tenant: string | null | undefined, id: string): string => `${tenant ?? ""}/${id}`;

export class Fleets {
  readonly shown = new Store<ShownFleets>({ connection: "connecting", attempt: 0, entries: [], live: 0, followed: 0 });
  #known = new Map<string, { entry: Entry; places: Places }>();
  #left: Entry[] = [];
  #summary = { live: 0, followed: 0, server: undefined as ServerView | undefined };
  /** Whether the token is the operator's, as far as it is known. */
  #isOperator = true;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stop = new AbortController();

  constructor(readonly server: Server) {
    void this.#follow();
  }

  close(): void {
    this.#stop.abort();
    clearTimeout(this.#timer);
  }

  async #follow(): Promise<void> {
    for (let attempt = 0; !this.#stop.signal.aborted; attempt += 1) {
      try {
        await this.#read(() => (attempt = 0));
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        const { status, code } = error instanceof Problem ? error : { status: 0, code: "" };
        if (code === "operator_only") {
          this.#isOperator = false;
          continue;
        }
        this.shown.set({ connection: status === 401 ? "unauthorised" : status === 404 ? "missing" : "reconnecting", attempt: attempt + 1 });
      }
      await new Promise((resolve) => setTimeout(resolve, Math.min(FIRST_PAUSE * 2 ** attempt, LONGEST_PAUSE)));
    }
  }

  async #read(connected: () => void): Promise<void> {
    const stream = await this.server.stream(this.#isOperator ? "live?all=true" : "live", this.#stop.signal);
    // The stream has no cursor: it begins with the sessions that are active now.
    this.#known.clear();
    this.shown.set({ connection: "live", attempt: 0 });
    connected();
    const reader = stream.getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) throw new Problem(0, "cut", "the stream was cut");
        this.#take(JSON.parse(value.data) as LiveFrame);
      }
    } finally {
      void reader.cancel().catch(() => undefined);
    }
  }

  #take(frame: LiveFrame): void {
    switch (frame.type) {
      case "summary":
        this.#summary = { live: frame.live, followed: frame.shown, server: frame.server ?? undefined };
        break;
      case "session": {
        const { tenant, node, session, fleet } = frame;
        const name = nameOf(tenant, session.id);
        const entry = { name, id: session.id, tenant: tenant ?? undefined, node: node ?? undefined, fleet, hasLeft: false };
        this.#known.set(name, { entry, places: indexed(fleet.agents) });
        this.#left = this.#left.filter((left) => left.name !== name);
        break;
      }
      case "event": {
        const event = frame.event as AgentEvent;
        const known = this.#known.get(nameOf(frame.tenant, event.sessionId));
        if (known) known.entry = { ...known.entry, fleet: apply(known.entry.fleet, event, known.places) };
        break;
      }
      case "left": {
        const name = nameOf(frame.tenant, frame.session_id);
        const known = this.#known.get(name);
        this.#known.delete(name);
        if (known) this.#left = [{ ...known.entry, hasLeft: true }, ...this.#left].slice(0, MOST_LEFT);
        break;
      }
    }
    this.#timer ??= setTimeout(() => this.#show(), PAUSE);
  }

  #show(): void {
    this.#timer = undefined;
    const entries = [...[...this.#known.values()].map(({ entry }) => entry), ...this.#left];
    this.shown.set({ entries, ...this.#summary });
  }
}
