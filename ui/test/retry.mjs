// A session with two runs: that of a timeline, and a retry of it in which known things differ.

/** Ids of the second run. */
const renamed = (text) => text.replaceAll(/\b01(?=[0-9a-f]{6}-)/g, "02");

/** Changes a field of the first event that is meant. */
function change(events, isMeant, field, value) {
  const event = events.find(isMeant);
  if (!event) throw new Error("the timeline has no such event");
  event[field] = value;
}

/**
 * Returns the events of both runs. In the second one the reviewer of promises is missing, the reviewer
 * of correctness reads another file, the runner's tests tell something else, the tester says something
 * else, the leading agent needs more tokens, and the reviewer of security takes twice as long.
 */
export function withRetry(events) {
  const again = JSON.parse(renamed(JSON.stringify(events)));
  const of = (label) => ({ source }) => source?.label === label || source?.agentId === label;
  const retry = again.filter((event) => !of("promises")(event));
  const is = (label, type, more = () => true) => (event) => of(label)(event) && event.type === type && more(event);
  change(retry, is("correctness", "TOOL_RESULT_START"), "input", { file: "src/other.rs" });
  const result = retry.findLast(is("runner", "TOOL_RESULT_TEXT_DELTA"));
  result.delta = `${result.delta}\none more failed`;
  const text = retry.findLast(is("tests", "TEXT_BLOCK_DELTA"));
  text.delta = `${text.delta} All in all.`;
  const call = retry.findLast((event) => !event.source && event.type === "MODEL_CALL_END");
  call.usage = { ...call.usage, outputTokens: call.usage.outputTokens + 50 };
  const end = retry.find(is("security", "AGENT_END"));
  end.createdAt = new Date(Date.parse(end.createdAt) + 10_000).toISOString();
  const minute = (time) => new Date(Date.parse(time) + 60_000).toISOString();
  const last = events.at(-1).seq;
  return [...events, ...retry.map((event, n) => ({ ...event, seq: last + n + 1, createdAt: minute(event.createdAt) }))];
}
