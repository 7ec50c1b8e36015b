// A value that components subscribe to, each to the part that it shows.
import { useEffect, useReducer, useRef } from "preact/hooks";

export class Store<T> {
  #value: T;
  #listeners = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(change: Partial<T>): void {
    this.#value = { ...this.#value, ...change };
    for (const listener of [...this.#listeners]) listener();
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** When a component is drawn again. */
export interface Pace {
  /** Whether it is in sight; if not, it keeps what it shows. */
  isSeen?: boolean;
  /** The shortest time between two drawings, in milliseconds. */
  pause?: number;
}

/**
 * Returns a part of the store's value; the component is drawn again when that part is another one.
 */
export function usePart<T, P>(store: Store<T>, pick: (value: T) => P, { isSeen = true, pause = 0 }: Pace = {}): P {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const part = pick(store.value);
  const shown = useRef({ part, pick });
  shown.current = { part, pick };
  useEffect(() => {
    let timer: number | undefined;
    const look = () => {
      timer = undefined;
      if (!Object.is(shown.current.pick(store.value), shown.current.part)) draw(undefined as never);
    };
    const changed = pause === 0 ? look : () => (timer ??= window.setTimeout(look, pause));
    if (!isSeen) return undefined;
    look();
    const stop = store.subscribe(changed);
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [store, isSeen, pause]);
  return part;
}
