// Begins a run and prints what each agent says. Needs the package eventsource.
import { EventSource } from "eventsource";

const { MAINSTEM_SERVER: server, MAINSTEM_TOKEN: token } = process.env;
const session = `${server}/v1/sessions/from-javascript`;
const authorized = (init) => ({ ...init, headers: { ...init?.headers, authorization: `Bearer ${token}` } });

const begun = await fetch(`${session}/runs`, authorized({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ input: process.argv.slice(2).join(" ") }),
}));
if (!begun.ok) throw new Error(await begun.text());
const { id } = await begun.json();

// Reconnects by itself, and continues behind the last event.
const events = new EventSource(`${session}/events?run=${id}`, {
  fetch: (url, init) => fetch(url, authorized(init)),
});
events.addEventListener("TEXT_BLOCK_DELTA", ({ data }) => {
  const { source, delta } = JSON.parse(data);
  console.log(`[${source?.agentId ?? "main"} ${source?.label ?? ""}] ${delta}`);
});
events.addEventListener("end", () => events.close());
