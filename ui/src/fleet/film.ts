// The record of a session in the browser: its events, and a checkpoint after every few hundred of
// them, from which the view at any event is computed. States are never changed, so that a
// checkpoint is a reference.
import type { AgentEvent } from "./event";
import { indexed, type Places } from "./fleet";
import { apply, type View } from "./view";

const EVERY = 500;

/** The most events that are retained; the oldest are discarded in steps. */
const MOST = 100_000;

export class Film {
  #events: AgentEvent[] = [];
  #checkpoints: View[];
  #places: Places;
  #now: View;

  constructor(base: View) {
    this.#checkpoints = [base];
    this.#places = indexed(base.fleet.agents);
    this.#now = base;
  }

  /** The view after the last event. */
  get now(): View {
    return this.#now;
  }

  /** The first event whose view is known. */
  get first(): number {
    return this.#checkpoints[0]!.fleet.seq;
  }

  get last(): number {
    return this.#now.fleet.seq;
  }

  get events(): readonly AgentEvent[] {
    return this.#events;
  }

  push(event: AgentEvent): void {
    if (event.seq <= this.last) return;
    this.#events.push(event);
    this.#now = apply(this.#now, event, this.#places);
    if (this.#events.length % EVERY === 0) this.#checkpoints.push(this.#now);
    if (this.#events.length >= MOST) this.#shorten();
  }

  /** Returns the view after the event `seq`, or after the last one before it. */
  at(seq: number): View {
    const after = this.#indexOf(seq + 1);
    const checkpoint = Math.floor(after / EVERY);
    const events = this.#events.slice(checkpoint * EVERY, after);
    return events.reduce((view, event) => apply(view, event, this.#places), this.#checkpoints[checkpoint]!);
  }

  /** The event `seq`, or the first one behind it. */
  after(seq: number): AgentEvent | undefined {
    return this.#events[this.#indexOf(seq)];
  }

  /** The index of the first event whose number is at least `seq`. */
  #indexOf(seq: number): number {
    let [low, high] = [0, this.#events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#events[middle]!.seq < seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #shorten(): void {
    const steps = Math.floor(MOST / 4 / EVERY);
    this.#events = this.#events.slice(steps * EVERY);
    this.#checkpoints = this.#checkpoints.slice(steps);
  }
}
