// The events as the reducers read them: the generated type, as a union that `type` tells apart.
import type { AgentEvent as Wire } from "../api";

type Known<T> = T extends { type: string } ? (string extends T["type"] ? never : T) : never;

/** An event of a known kind. One of a later version has another `type`, and is ignored. */
export type AgentEvent = Known<Wire>;

export type Of<T extends AgentEvent["type"]> = Extract<AgentEvent, { type: T }>;

/** The key of an agent; the leading agent, which has no source, is `root`. */
export type Key = string;

export const ROOT: Key = "root";

export const keyOf = (event: AgentEvent): Key => event.source?.agentKey ?? ROOT;

/** Milliseconds since 1970. */
export const timeOf = (event: { createdAt: string }): number => Date.parse(event.createdAt);
