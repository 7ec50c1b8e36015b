// A session of a server: its events are followed, also after the connection was lost.
import type { EventSource, FleetState, LinkView, SessionView } from "./api";
import { keyOf, type AgentEvent } from "./fleet/event";
import { excerptOf } from "./fleet/excerpt";
import { Film } from "./fleet/film";
import { EMPTY } from "./fleet/lane";
import { NO_VIEW, ofSnapshot, type View } from "./fleet/view";
import { eventsOf, Part } from "./part";
import { Problem, type Server } from "./server";
import { Session, type Connection } from "./session";

/** A longer record is followed from its snapshot on: its first events take too long to read. */
const WHOLE = 50_000;

/** The most events that are read at once to be saved. */
const MOST_SAVED = 100_000;

/** How long events are applied in one frame, in milliseconds. */
const BUDGET = 8;

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 5000;

/** Whether a run begins or ends with an event. */
const isOfRun = (event: AgentEvent): boolean =>
  !event.source && (event.type === "AGENT_START" || event.type === "AGENT_END");

export class LiveSession extends Session {
  #snapshot?: FleetState;
  /** The part of the record that is replayed, if it is not that of the film. */
  #part: Part | undefined;
  #seek = new AbortController();
  /** Whether the beginning of the record can't be read. */
  #hasLost = false;
  #queue: AgentEvent[] = [];
  #sources = new Map<string, EventSource>();
  #isScheduled = false;
  #stop = new AbortController();
  #wake = () => {};

  /** With a link, the session is only read, and the token of `server` is that of the link. */
  constructor(id: string, server: Server, link?: LinkView) {
    super(id, server);
    this.shown.set({ link });
    void this.#follow();
  }

  override close(): void {
    this.#stop.abort();
    this.#seek.abort();
  }

  override reconnect(): void {
    this.#wake();
  }

  /** Reads what the server says of the session, such as its queued runs; not with a link. */
  async refresh(): Promise<void> {
    if (this.shown.value.link) return;
    const session = await this.server.get<SessionView>(`sessions/${encodeURIComponent(this.id)}`).catch(() => undefined);
    if (session) this.shown.set({ session });
  }

  override eventAfter(seq: number): AgentEvent | undefined {
    return this.#part ? this.#part.film.after(seq + 1) : super.eventAfter(seq);
  }

  override async range(from: number, to: number): Promise<AgentEvent[]> {
    if (Math.max(1, from) > this.film.first || this.#hasLost) return excerptOf(this.film.events, { from, to });
    if (to - from > MOST_SAVED) {
      throw new Problem(0, "too_long", `choose at most ${MOST_SAVED} events; \`mainstem sessions export\` saves all`);
    }
    const events = [];
    for await (const event of eventsOf(this.server, this.id, Math.max(1, from) - 1, to, this.#stop.signal)) events.push(event);
    return events;
  }

  override seek(seq?: number): void {
    if (seq === undefined || this.#hasLost || (seq >= this.film.first && !this.#part?.has(seq))) {
      this.#leavePart();
      return super.seek(seq);
    }
    if (this.#part?.has(seq)) this.#showPart(this.#part, seq);
    else void this.#readPart(seq);
  }

  #leavePart(): void {
    this.#seek.abort();
    this.#part = undefined;
    this.shown.set({ seeking: undefined });
  }

  #showPart(part: Part, seq: number): void {
    this.shown.set({ replay: seq, view: part.film.at(seq), seeking: undefined });
    // A stream that is cut is read again when the next event is shown.
    part.extend(seq, this.film.last, this.#seek.signal).catch(() => undefined);
  }

  /** Reads the part of the record around an event, and shows it. */
  async #readPart(seq: number): Promise<void> {
    this.#leavePart();
    const seek = (this.#seek = new AbortController());
    this.shown.set({ replay: seq, seeking: "reading" });
    try {
      const part = await Part.around(seq, this.server, this.id, seek.signal);
      if (seek.signal.aborted) return;
      this.#part = part;
      this.#showPart(part, seq);
    } catch (error) {
      if (seek.signal.aborted) return;
      this.shown.set({ seeking: error instanceof Error ? error.message : String(error) });
    }
  }

  async #follow(): Promise<void> {
    for (let attempt = 0; !this.#stop.signal.aborted; attempt += 1) {
      try {
        if (this.#snapshot === undefined) await this.#begin();
        await this.#read(() => (attempt = 0));
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        this.#failed(error, attempt + 1);
      }
      await this.#pause(Math.min(FIRST_PAUSE * 2 ** attempt, LONGEST_PAUSE));
    }
  }

  /** Reads the snapshot, and chooses where the record begins. */
  async #begin(): Promise<void> {
    const fleet = await this.server.get<FleetState>(`sessions/${encodeURIComponent(this.id)}/fleet`, this.#stop.signal);
    this.#snapshot = fleet;
    this.#queue = [];
    this.#leavePart();
    this.film = new Film(fleet.seq > WHOLE || this.#hasLost ? ofSnapshot(fleet) : NO_VIEW);
    this.#show();
    void this.refresh();
  }

  async #read(connected: () => void): Promise<void> {
    const after = this.#queue.at(-1)?.seq ?? this.film.last;
    const stream = await this.server.events(this.id, after, this.#stop.signal);
    this.shown.set({ connection: stream ? "live" : "over", attempt: 0 });
    if (!stream) return;
    connected();
    const reader = stream.getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done || value.event === "end") return;
        this.#take(JSON.parse(value.data) as AgentEvent);
      }
    } finally {
      void reader.cancel().catch(() => undefined);
    }
  }

  #take(event: AgentEvent): void {
    // The beginning of the record can't be read, so the snapshot takes its place.
    if (event.type === "GAP" && !this.#hasLost) {
      this.#hasLost = true;
      this.#snapshot = undefined;
      throw new Problem(0, "gap", "events are missing");
    }
    this.#share(event);
    this.#queue.push(event);
    this.#schedule();
  }

  /** Events of an invocation share their source, which is most of an event's size. */
  #share(event: AgentEvent): void {
    if (!event.source) return;
    const name = `${event.replyId} ${event.source.taskId}`;
    const known = this.#sources.get(name);
    if (known) event.source = known;
    else this.#sources.set(name, event.source);
  }

  /** Applies what has arrived before the next frame is drawn; a hidden page draws none. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    if (document.hidden) setTimeout(() => this.#flush(), 250);
    else requestAnimationFrame(() => this.#flush());
  }

  #flush(): void {
    this.#isScheduled = false;
    const end = performance.now() + BUDGET;
    let count = 0;
    while (count < this.#queue.length && (count % 64 > 0 || performance.now() < end)) {
      this.film.push(this.#queue[count++]!);
    }
    // The server's word on the session changes with its runs.
    if (this.#queue.slice(0, count).some(isOfRun)) void this.refresh();
    this.#forgetCancels(this.#queue.slice(0, count));
    this.#queue = this.#queue.slice(count);
    this.#show();
    if (this.#queue.length > 0) this.#schedule();
  }

  /** An agent that has ended is not being cancelled, also if it begins a further turn. */
  #forgetCancels(events: readonly AgentEvent[]): void {
    const { cancelling } = this.shown.value;
    if (cancelling.size === 0) return;
    const ended = new Set(events.filter(({ type }) => type === "AGENT_END").map(keyOf));
    this.shown.set({ cancelling: new Set([...cancelling].filter((key) => !ended.has(key))) });
  }

  #show(): void {
    const { replay } = this.shown.value;
    const view = replay === undefined ? this.live() : this.shown.value.view;
    const first = this.#hasLost ? this.film.first : 0;
    this.shown.set({ view, first, last: this.film.last, arrivedAt: Date.now() });
  }

  /** The view of the last event. While the record is read, the snapshot is ahead of it. */
  protected override live(): View {
    const view = this.film.now;
    const snapshot = this.#snapshot;
    if (!snapshot || snapshot.seq <= view.fleet.seq) return view;
    const lanes = snapshot.agents.map((_, place) => view.lanes[place] ?? EMPTY);
    return { ...view, fleet: snapshot, lanes };
  }

  #failed(error: unknown, attempt: number): void {
    const { status, code } = error instanceof Problem ? error : { status: 0, code: "" };
    if (status === 410) {
      this.#hasLost = true;
      this.#snapshot = undefined;
    }
    // A server without a record has been started again: its sessions begin anew.
    if (status === 404 || code === "bad_cursor") {
      this.#snapshot = undefined;
      this.film = new Film(NO_VIEW);
      this.#show();
    }
    const connection: Connection = status === 401 ? "unauthorised" : status === 404 ? "missing" : "reconnecting";
    // A server that was started again may not know of a cancel.
    this.shown.set({ connection, attempt, cancelling: new Set() });
  }

  #pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
