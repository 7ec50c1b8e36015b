// Puts the data that messages refer to into events, so that a file of events opens without the
// session.
import type { StoredData } from "./api";
import type { AgentEvent } from "./fleet/event";
import { base64Of, Problem } from "./server";
import type { Session } from "./session";

/** The events that have content of messages. */
const CARRIERS = new Set(["AGENT_START", "AGENT_RESULT", "TOOL_RESULT_DATA_DELTA", "MESSAGE_SENT", "STATE_CHECKPOINT"]);

/** Returns events with their data; a reference to deleted data stays. */
export async function withData({ id, server }: Session, events: readonly AgentEvent[]): Promise<AgentEvent[]> {
  const known = new Map<string, Promise<string | undefined>>();
  const read = (data: StoredData) => {
    const reading = known.get(data.sha256) ?? server.data(id, data).then(base64Of).catch(gone);
    known.set(data.sha256, reading);
    return reading;
  };
  const filled = async (value: unknown): Promise<unknown> => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return Promise.all(value.map(filled));
    if (isSource(value)) {
      const base64 = await read(value.stored);
      return base64 === undefined ? value : { base64 };
    }
    const entries = Object.entries(value).map(async ([name, inner]) => [name, await filled(inner)] as const);
    return Object.fromEntries(await Promise.all(entries));
  };
  return Promise.all(events.map(async (event) => (CARRIERS.has(event.type) ? (await filled(event)) as AgentEvent : event)));
}

/** Ignores that data was deleted; throws any other error, so that no incomplete file is saved. */
function gone(error: unknown): undefined {
  if (!(error instanceof Problem && ["not_found", "no_server"].includes(error.code))) throw error;
}

const isSource = (value: object): value is { stored: StoredData } =>
  "stored" in value && typeof value.stored === "object" && value.stored !== null && "sha256" in value.stored;
