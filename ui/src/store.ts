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

/** Returns a part of the store's value; the component is drawn again when that part is another one. */
export function usePart<T, P>(store: Store<T>, pick: (value: T) => P): P {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const part = pick(store.value);
  const shown = useRef(part);
  const picker = useRef(pick);
  shown.current = part;
  picker.current = pick;
  useEffect(() => store.subscribe(() => {
    if (!Object.is(picker.current(store.value), shown.current)) draw(undefined as never);
  }), [store]);
  return part;
}
