// Records as text with one event a line, and excerpts of them.
import type { AgentEvent, Key } from "./event";
import { subjectOf } from "./view";

/** A part of a record; an absent field restricts nothing. */
export interface Range {
  from?: number;
  to?: number;
  /** The agents whose events are retained. */
  agents?: ReadonlySet<Key>;
}

/** Reads NDJSON; a last line that was cut while it was written is left out. */
export function recordOf(text: string): AgentEvent[] {
  const lines = text.split("\n").filter((line) => line.trim());
  return lines.flatMap((line, n) => {
    try {
      return [JSON.parse(line) as AgentEvent];
    } catch (error) {
      if (n === lines.length - 1) return [];
      throw new Error(`line ${n + 1} of the record is not JSON`, { cause: error });
    }
  });
}

export const linesOf = (events: readonly AgentEvent[]): string[] => events.map((event) => `${JSON.stringify(event)}\n`);

export function excerptOf(events: readonly AgentEvent[], { from = 0, to = Infinity, agents }: Range): AgentEvent[] {
  return events.filter((event) => event.seq >= from && event.seq <= to && (agents?.has(subjectOf(event)) ?? true));
}

/**
 * Says what a record lacks at its beginning or between its events; undefined if it is a whole
 * stream.
 *
 * An excerpt begins in the middle of a run: agents act without having started, texts and calls end
 * that have not begun.
 */
export function lacks(events: readonly AgentEvent[]): string | undefined {
  const first = events[0];
  if (!first) return undefined;
  const missing = events.at(-1)!.seq - first.seq + 1 - events.length;
  const parts = [first.seq > 1 && `it begins at event ${first.seq}`, missing > 0 && `${missing} events between are left out`];
  const said = parts.filter(Boolean).join(", and ");
  return said ? `This is an excerpt: ${said}.` : undefined;
}
