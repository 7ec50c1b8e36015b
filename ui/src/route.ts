// The address of a moment: `#session/agent@seq?…`, of which the later parts may be absent. Behind
// the question mark are the tenant, the token of a link, the filter and the runs that are compared. `#?live` is
// the address of all sessions that are active.
import type { Filter, PartKind } from "./fleet/filter";
import { PART_KINDS } from "./fleet/filter";

/** Two runs to be compared; the second one may be of another session. */
export interface Pair {
  a?: string;
  b?: string;
  session?: string;
}

export interface Route {
  /** All active sessions, and not one of them. */
  isLive?: boolean | undefined;
  session?: string | undefined;
  /** The tenant of the session, if the token is the operator's. */
  tenant?: string | undefined;
  /** The token of a link, with which the session is only read. */
  link?: string | undefined;
  agent?: string | undefined;
  seq?: number | undefined;
  filter?: Filter | undefined;
  compare?: Pair | undefined;
}

export function readRoute(hash: string): Route {
  const [, session, agent, seq, query] = /^#?([^/@?]*)(?:\/([^@?]*))?(?:@(\d+))?(?:\?(.*))?$/.exec(hash) ?? [];
  const route: Route = {};
  if (session) route.session = decodeURIComponent(session);
  if (agent) route.agent = decodeURIComponent(agent);
  if (seq) route.seq = Number(seq);
  if (query) readQuery(new URLSearchParams(query), route);
  return route;
}

function readQuery(query: URLSearchParams, route: Route): void {
  if (query.has("live")) route.isLive = true;
  const [tenant, link] = [query.get("tenant"), query.get("link")];
  if (tenant) route.tenant = tenant;
  if (link) route.link = link;
  const filter: Filter = {};
  const [id, within, depth, kinds] = ["id", "in", "depth", "kind"].map((name) => query.get(name) || undefined);
  if (id) filter.id = id;
  if (within) filter.within = within;
  if (depth && /^\d+$/.test(depth)) filter.depth = Number(depth);
  const known = kinds?.split(",").filter((kind): kind is PartKind => kind in PART_KINDS) ?? [];
  if (known.length > 0) filter.kinds = known;
  if (Object.keys(filter).length > 0) route.filter = filter;
  if (!query.has("compare")) return;
  const [a, b, session] = ["a", "b", "of"].map((name) => query.get(name) || undefined);
  route.compare = { ...(a && { a }), ...(b && { b }), ...(session && { session }) };
}

export function writeRoute({ isLive, session, tenant, link, agent, seq, filter, compare }: Route): string {
  if (isLive) return "#?live";
  if (session === undefined) return "#";
  const of = agent === undefined ? "" : `/${encodeURIComponent(agent)}`;
  const at = seq === undefined ? "" : `@${seq}`;
  const query = writeQuery({ tenant, link }, filter ?? {}, compare);
  return `#${encodeURIComponent(session)}${of}${at}${query && `?${query}`}`;
}

function writeQuery(access: Pick<Route, "tenant" | "link">, { id, within, depth, kinds }: Filter, compare: Pair | undefined): string {
  const fields = { ...access, id, in: within, depth, kind: kinds?.join(",") };
  const pair = compare && { compare: "", a: compare.a, b: compare.b, of: compare.session };
  const present = Object.entries({ ...fields, ...pair }).filter(([, value]) => value !== undefined);
  return new URLSearchParams(present.map(([name, value]) => [name, String(value)])).toString();
}
