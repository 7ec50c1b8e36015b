// What all parts of the page share: the session that is shown, the agent that is selected, and how
// to change them.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Key } from "./fleet/event";
import type { Session, Shown } from "./session";
import { Problem } from "./server";
import { Store, usePart, type Pace } from "./store";

/** A message of the page: why an action failed, or that it was accepted. */
export interface Notice {
  text: string;
  isError: boolean;
}

export interface Desk {
  session: Session;
  selected: Key;
  select(key: Key): void;
}

export const DeskContext = createContext<Desk | undefined>(undefined);

export function useDesk(): Desk {
  const desk = useContext(DeskContext);
  if (!desk) throw new Error("there is no session");
  return desk;
}

export function useShown<P>(pick: (shown: Shown) => P, pace?: Pace): P {
  return usePart(useDesk().session.shown, pick, pace);
}

/** For figures and lists, which change faster than they can be read. */
export const SLOW: Pace = { pause: 200 };

export const notices = new Store<{ notice?: Notice | undefined }>({});

/** Does something that the server may refuse, and shows what came of it. */
export async function attempt(work: () => Promise<unknown>, done: string): Promise<boolean> {
  try {
    await work();
    notices.set({ notice: { text: done, isError: false } });
    return true;
  } catch (error) {
    notices.set({ notice: { text: describe(error), isError: true } });
    return false;
  }
}

const describe = (error: unknown): string => (error instanceof Problem ? `${error.message} (${error.code})` : String(error));

/** Why nothing can be sent at the moment; undefined if it can. */
export function blocked({ link, replay }: Shown): string | undefined {
  if (replay !== undefined) return "this is a replay; go back to live first";
  if (link === "reconnecting") return "the connection is lost";
  if (link === "unauthorised") return "a token is required";
  return link === "connecting" ? "connecting" : undefined;
}
