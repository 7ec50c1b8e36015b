// What all parts of a page share: the session that is shown, the agent that is selected, the
// filter, and how to change them.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { LinkView } from "./api";
import type { Key } from "./fleet/event";
import type { Filter, Matches } from "./fleet/filter";
import { isBeingCancelled } from "./fleet/view";
import type { Route } from "./route";
import { Problem } from "./server";
import type { Session, Shown } from "./session";
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
  route: Route;
  /** Changes parts of the address, without a step in the history. */
  go(change: Partial<Route>): void;
  /** Whether this is the page itself, which has an address, and not an element of another document. */
  isPage: boolean;
  notices: Store<{ notice?: Notice | undefined }>;
}

export const DeskContext = createContext<Desk | undefined>(undefined);

export function useDesk(): Desk {
  const desk = useContext(DeskContext);
  if (!desk) throw new Error("there is no session");
  return desk;
}

/** The filter, and the agents that it shows. */
export interface Chosen {
  filter: Filter;
  /** Undefined if all agents are shown. */
  matches: Matches | undefined;
}

export const ChosenContext = createContext<Chosen>({ filter: {}, matches: undefined });

export const useChosen = (): Chosen => useContext(ChosenContext);

export function useShown<P>(pick: (shown: Shown) => P, pace?: Pace): P {
  return usePart(useDesk().session.shown, pick, pace);
}

/** The link with which the session is read; with one, it can't be changed. */
export const useLink = (): LinkView | undefined => useShown(({ link }) => link);

/** Only a page with a token of the server goes to other sessions, and shares its own. */
export const hasSessions = ({ session: { shown: { value: { connection, link } } }, isPage }: Desk): boolean =>
  isPage && connection !== "record" && !link;

/** The time at which the view stands still; undefined while it goes on. */
export const useUntil = (): string | undefined =>
  useShown(({ replay, connection, view }) => (replay === undefined && connection !== "over" ? undefined : view.fleet.at));

/** Whether an agent of the live view is being cancelled. */
export const useCancelling = (key: Key, pace?: Pace): boolean =>
  useShown(({ replay, cancelling, view }) => replay === undefined && isBeingCancelled(view.fleet, cancelling, key), pace);

/** For figures and lists, which change faster than they can be read. */
export const SLOW: Pace = { pause: 200 };

type Attempt = (work: () => Promise<unknown>, done?: string) => Promise<boolean>;

/** Returns what does something that may be refused, and shows what came of it. */
export function useAttempt(): Attempt {
  const { notices } = useDesk();
  return async (work, done) => {
    try {
      await work();
      if (done) notices.set({ notice: { text: done, isError: false } });
      return true;
    } catch (error) {
      notices.set({ notice: { text: describe(error), isError: true } });
      return false;
    }
  };
}

const describe = (error: unknown): string =>
  error instanceof Problem ? `${error.message} (${error.code})` : error instanceof Error ? error.message : String(error);

/** Whether the session was read: before that, it may have agents that are not shown. */
export const wasRead = ({ connection, last }: Shown): boolean => last > 0 || (connection !== "connecting" && connection !== "reconnecting");

/** Why nothing can be sent at the moment; undefined if it can. */
export function blocked({ connection, replay }: Shown): string | undefined {
  if (connection === "record") return "this is a recorded session; nothing can be sent to it";
  if (replay !== undefined) return "this is a replay; go back to live first";
  if (connection === "reconnecting") return "the connection is lost";
  if (connection === "unauthorised") return "a token is required";
  return connection === "connecting" ? "connecting" : undefined;
}
