// The official JavaScript SDK as a client of our server: prints what it reads.

import { Client } from "@langchain/langgraph-sdk";

const [place, token] = process.argv.slice(2);
const [url, scenario] = place.split("#");
const client = new Client({ apiUrl: `${url}/lg`, apiKey: token });
const ui = async (name) => import(new URL(`node_modules/@langchain/langgraph-sdk/dist/ui/${name}.js`, import.meta.url));
const ask = (content) => ({ messages: [{ type: "human", content }] });

const scenarios = {
  // The manager of useStream, without React.
  async subagents() {
    const { StreamManager } = await ui("manager");
    const { MessageTupleManager } = await ui("messages");
    const manager = new StreamManager(new MessageTupleManager(), { throttle: false, filterSubagentMessages: true });
    const { thread_id } = await client.threads.create();
    const failures = [];
    let shown = [];
    await manager.start(
      () => client.runs.stream(thread_id, "main", {
        input: ask("go"), streamMode: ["values", "updates", "messages-tuple"], streamSubgraphs: true, streamResumable: true,
      }),
      {
        getMessages: (values) => values.messages ?? [],
        setMessages: (current, messages) => {
          shown = messages;
          return { ...current, messages };
        },
        initialValues: {},
        callbacks: {},
        onSuccess: () => undefined,
        onError: (error) => failures.push(String(error)),
      },
    );
    await manager.queue;
    for (const failure of failures) console.log("failed", failure);
    for (const one of manager.getSubagents().values()) {
      const { description, subagent_type } = one.toolCall.args;
      const texts = one.messages.map((message) => `${message.type} ${message.content}`);
      console.log(one.status, subagent_type, description, JSON.stringify(one.result), JSON.stringify(texts));
    }
    for (const message of shown) console.log(" ", message.type, JSON.stringify(message.content));
  },

  async long() {
    const { thread_id } = await client.threads.create();
    const ids = [];
    let text = "";
    const run = client.runs.stream(thread_id, "main", { input: ask("go"), streamMode: "messages-tuple", streamResumable: true });
    for await (const { id, event, data } of run) {
      if (event === "messages" && data[0].type === "AIMessageChunk") text += data[0].content;
      if (event === "messages") ids.push(id);
    }
    const expected = Array.from({ length: 400 }, (_, number) => `${number} `).join("");
    console.log("text", text === expected, "ids", new Set(ids).size === ids.length);
  },

  async interrupt() {
    const { thread_id } = await client.threads.create();
    const last = async (payload) => {
      let values;
      for await (const { event, data } of client.runs.stream(thread_id, "main", { streamMode: "values", ...payload })) {
        if (event === "values") values = data;
      }
      return values;
    };
    const asked = await last({ input: ask("go") });
    console.log("asked", JSON.stringify(asked.__interrupt__[0].value.action_requests));
    const done = await last({ command: { resume: { decisions: [{ type: "approve" }] } } });
    console.log("done", JSON.stringify(done.messages.at(-1).content));
  },
};

await scenarios[scenario]();
