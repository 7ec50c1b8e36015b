// The address of a moment: `#session/agent@seq`, of which the later parts may be absent.
import { setToken } from "./server";

export interface Route {
  session?: string;
  agent?: string;
  seq?: number;
}

export function readRoute(hash: string): Route {
  const [, session, agent, seq] = /^#?([^/@]*)(?:\/([^@]*))?(?:@(\d+))?$/.exec(hash) ?? [];
  const route: Route = {};
  if (session) route.session = decodeURIComponent(session);
  if (agent) route.agent = decodeURIComponent(agent);
  if (seq) route.seq = Number(seq);
  return route;
}

export function writeRoute({ session, agent, seq }: Route): string {
  if (session === undefined) return "#";
  const of = agent === undefined ? "" : `/${encodeURIComponent(agent)}`;
  return `#${encodeURIComponent(session)}${of}${seq === undefined ? "" : `@${seq}`}`;
}

/**
 * Takes a token out of the address, where `mainstem serve` puts it, so that no history retains it.
 */
export function takeToken(): void {
  const found = /^#token=([^&]+)$/.exec(location.hash);
  if (!found) return;
  setToken(decodeURIComponent(found[1]!));
  history.replaceState(null, "", location.pathname);
}
