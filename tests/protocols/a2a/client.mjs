// The official JavaScript client, unchanged, over one of the bindings: prints what it gets.

import { randomUUID } from "node:crypto";
import { Role, TaskState } from "@a2a-js/sdk";
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";

const [url, token, binding = "JSONRPC"] = process.argv.slice(2);
const extension = "https://github.com/mainstem-rs/mainstem/a2a/events/v1";

const fetchImpl = (input, init = {}) =>
  fetch(input, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } });
const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
  transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
  preferredTransports: [binding],
  cardResolver: new DefaultAgentCardResolver({ fetchImpl: fetch }),
});
const client = await new ClientFactory(options).createFromUrl(url);

const message = (content, more = {}) => ({
  messageId: randomUUID(),
  role: Role.ROLE_USER,
  parts: [{ content, metadata: undefined, filename: "", mediaType: "" }],
  contextId: "",
  taskId: "",
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
  ...more,
});
const request = (text, more) => ({
  tenant: "",
  message: message(typeof text === "string" ? { $case: "text", value: text } : text, more),
  configuration: undefined,
  metadata: undefined,
});
const state = (status) => TaskState[status.state].replace("TASK_STATE_", "").toLowerCase();
const texts = (parts) => parts.map((part) => (part.content.$case === "text" ? part.content.value : "")).join("");

const shown = ({ payload: { $case, value } }) => {
  if ($case === "task") {
    const said = value.history.map((message) => texts(message.parts));
    return `task ${state(value.status)} ${said} [${value.artifacts.map((artifact) => texts(artifact.parts))}]`;
  }
  if ($case === "statusUpdate") {
    const source = value.metadata?.[extension]?.source?.agentId;
    return `status ${state(value.status)}${source ? ` of ${source}` : ""}`;
  }
  const flags = (value.append ? "+" : "") + (value.lastChunk ? "." : "");
  return `artifact ${flags} ${JSON.stringify(texts(value.artifact.parts))}`;
};

const read = async (stream, until) => {
  let ids = {};
  for await (const event of stream) {
    if (event.payload.$case === "task") ids = { task: event.payload.value.id, context: event.payload.value.contextId };
    console.log(" ", shown(event));
    if (until && shown(event).includes(until)) break;
  }
  return ids;
};

const fails = async (what, call) => {
  try {
    await call();
    console.log(" ", what, "did not fail");
  } catch (error) {
    console.log(" ", what, error.name);
  }
};

const card = await client.getAgentCard();
console.log("card", card.name, card.skills.map((skill) => skill.id).join());
console.log("send");
const sent = await client.sendMessage(request("greet me"));
console.log(" ", state(sent.status), texts(sent.artifacts[0].parts));
console.log("stream");
await read(client.sendMessageStream(request("greet me")));
console.log("children, for those who ask");
await read(
  client.sendMessageStream(request("delegate this"), { serviceParameters: { "A2A-Extensions": extension } }),
);
console.log("drop and subscribe");
const { task: slow } = await read(client.sendMessageStream(request("be slow")), "first");
await read(client.resubscribeTask({ tenant: "", id: slow }));
console.log("cancel");
const { task: hanging } = await read(client.sendMessageStream(request("hang now")), "I hang");
console.log(" ", state((await client.cancelTask({ tenant: "", id: hanging, metadata: undefined })).status));
await fails("cancel", () => client.cancelTask({ tenant: "", id: hanging, metadata: undefined }));
await fails("unknown", () => client.getTask({ tenant: "", id: "no-such-task", historyLength: undefined }));
console.log("yes, as data");
const { task: asking } = await read(client.sendMessageStream(request("ask me")));
const got = await client.getTask({ tenant: "", id: asking, historyLength: undefined });
const asked = got.status.message.parts[1].content.value;
const answer = { confirmId: asked.confirmId, approved: true, input: { word: "ho" } };
await read(client.sendMessageStream(request({ $case: "data", value: answer }, { taskId: asking })));
