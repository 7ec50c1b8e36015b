// The server's API over `fetch`: JSON answers, problems as errors, and streams of server-sent
// events that continue behind their last event after a cut. `EventSource` sends no token, so it is
// not used.
import { EventSourceParserStream } from "eventsource-parser/stream";
import type { Problem as ProblemBody } from "./api";

const TOKEN = "mainstem-token";

/** Why the server refused a request, or why it can't be reached. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
  ) {
    super(detail);
  }
}

/** One frame of a stream. */
export interface Frame {
  id?: string;
  event?: string;
  data: string;
}

// Relative to this script, which is in the folder `page`, so that the page works below any path.
const SCRIPT = import.meta.url;
const BASE = new URL("../", SCRIPT);

export function token(): string | null {
  return sessionStorage.getItem(TOKEN);
}

export function setToken(value: string): void {
  sessionStorage.setItem(TOKEN, value);
}

export const get = <T>(path: string, signal?: AbortSignal): Promise<T> => json<T>("GET", path, undefined, signal);

export const post = <T>(path: string, body?: unknown): Promise<T> => json<T>("POST", path, body);

async function json<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const response = await send(method, path, { accept: "application/json" }, body, signal);
  const text = await response.text();
  return (text ? JSON.parse(text) : undefined) as T;
}

/**
 * Opens the stream of a session's events after one of them; undefined if it is over and has no
 * newer ones.
 */
export async function events(session: string, after: number, signal: AbortSignal): Promise<ReadableStream<Frame> | undefined> {
  const headers: Record<string, string> = { accept: "text/event-stream" };
  if (after > 0) headers["last-event-id"] = String(after);
  const response = await send("GET", `sessions/${encodeURIComponent(session)}/events`, headers, undefined, signal);
  if (response.status === 204 || !response.body) return undefined;
  return response.body.pipeThrough(new TextDecoderStream() as never).pipeThrough(new EventSourceParserStream());
}

async function send(method: string, path: string, headers: Record<string, string>, body: unknown, signal?: AbortSignal): Promise<Response> {
  const bearer = token();
  if (bearer) headers.authorization = `Bearer ${bearer}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const request: RequestInit = { method, headers, cache: "no-store" };
  if (signal) request.signal = signal;
  if (body !== undefined) request.body = JSON.stringify(body);
  const response = await fetch(new URL(`v1/${path}`, BASE), request).catch((error: unknown) => {
    throw signal?.aborted ? error : new Problem(0, "unreachable", "the server can't be reached");
  });
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function problemOf(response: Response): Promise<Problem> {
  const body = (await response.json().catch(() => undefined)) as ProblemBody | undefined;
  return new Problem(response.status, body?.code ?? "unknown", body?.detail ?? `the server answered ${response.status}`);
}
