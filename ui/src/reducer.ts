// The package `mainstem-reducer`: the state of a fleet from its events, for any program that reads
// them.
export type { AgentState, FleetState, Usage } from "./api";
export { keyOf, ROOT, type AgentEvent, type Key } from "./fleet/event";
export { excerptOf, lacks, linesOf, recordOf, type Range } from "./fleet/excerpt";
export { Film } from "./fleet/film";
export { agentKey, apply, indexed, NO_FLEET, totalTokens, type Places } from "./fleet/fleet";
export type { Lane, Part, Span } from "./fleet/lane";
export { apply as applyToView, costOf, isRunning, nameOf, NO_VIEW, ofSnapshot, type View } from "./fleet/view";
