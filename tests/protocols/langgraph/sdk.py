"""The official Python SDK as a client of our server: prints what it reads."""

import asyncio
import json
import sys
from pathlib import Path

import httpx
from langchain_core.messages import AIMessageChunk, convert_to_messages
from langgraph_sdk import get_client
from langgraph_sdk.errors import APIStatusError
from langgraph_sdk.sse import SSEDecoder

MODES = ["values", "updates", "messages-tuple", "custom"]
place, token = sys.argv[1:]
url, scenario = place.split("#")
client = get_client(url=f"{url}/lg", api_key=token)


def ask(text: str) -> dict:
    return {"messages": [{"role": "human", "content": text}]}


class Reader:
    """Gathers the text of each namespace."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.events: list[str] = []
        self.ids: list[str] = []
        self.values = None
        self.interrupts: list = []

    def take(self, part) -> None:
        mode, _, namespace = part.event.partition("|")
        namespace = "child" if namespace.startswith("tools:") else namespace
        if part.id and part.event not in ("metadata", "end"):
            self.ids.append(part.id)
        name = f"{mode}|{namespace}" if namespace else mode
        if not self.events or self.events[-1] != name:
            self.events.append(name)
        if mode == "messages":
            message, metadata = part.data
            assert metadata["langgraph_checkpoint_ns"].startswith("tools:") == bool(namespace), metadata
            if message["type"] == "AIMessageChunk" and message["content"]:
                self.texts[namespace] = self.texts.get(namespace, "") + message["content"]
        if part.event == "values":
            self.values = part.data
        if isinstance(part.data, dict) and part.data.get("__interrupt__"):
            self.interrupts = part.data["__interrupt__"]


def shown(message: dict) -> str:
    calls = [f"{call['name']}{json.dumps(call['args'], sort_keys=True)}" for call in message.get("tool_calls", [])]
    return " ".join([message["type"], repr(message["content"]), *calls])


async def stream() -> None:
    assistants = await client.assistants.search()
    print("assistants", [one["assistant_id"] for one in assistants], (await client.assistants.get("main"))["graph_id"])
    thread = await client.threads.create()
    created, reader = [], Reader()
    async for part in client.runs.stream(
        thread["thread_id"], "main", input=ask("go"), stream_mode=MODES, stream_subgraphs=True,
        stream_resumable=True, on_run_created=created.append,
    ):
        reader.take(part)
    print("first", reader.events[0], "last", reader.events[-1])
    print("modes", sorted(set(reader.events)))
    print("texts", reader.texts)
    numbers = [[int(part) for part in id.split("-")] + [10**9] for id in reader.ids]
    print("ordered", all(a[:2] < b[:2] for a, b in zip(numbers, numbers[1:])))
    for message in reader.values["messages"]:
        print(" ", shown(message))
    state = await client.threads.get_state(thread["thread_id"])
    print("state", state["values"] == reader.values, state["next"])
    history = await client.threads.get_history(thread["thread_id"])
    print("history", [one["values"] == reader.values for one in history])
    run = await client.runs.get(thread["thread_id"], created[0]["run_id"])
    print("run", run["status"], [one["run_id"] == run["run_id"] for one in await client.runs.list(thread["thread_id"])])
    joined = await client.runs.join(thread["thread_id"], run["run_id"])
    print("joined", joined == reader.values)
    again = Reader()
    async for part in client.runs.join_stream(thread["thread_id"], run["run_id"], last_event_id=reader.ids[3]):
        again.take(part)
    print("resumed", again.ids == reader.ids[4:])
    waited = await client.runs.wait(thread["thread_id"], "main", input=ask("and now?"))
    print("waited", [shown(message) for message in waited["messages"][-2:]], len(waited["messages"]))
    thread = await client.threads.get(thread["thread_id"])
    print("thread", thread["status"], len(thread["values"]["messages"]))


async def messages() -> None:
    """The mode `messages`: each message grows, then it is complete."""
    known, grown = {}, {}
    async for part in client.runs.stream(None, "main", input=ask("go"), stream_mode="messages"):
        if part.event == "messages/metadata":
            known |= part.data
        elif part.event.startswith("messages/"):
            (message,) = part.data
            assert message["id"] in known
            assert message["content"].startswith(grown.get(message["id"], ""))
            grown[message["id"]] = message["content"]
            if part.event == "messages/complete":
                print(shown(message))


async def long() -> None:
    """A long text, over connections that are cut."""
    thread, reader = await client.threads.create(), Reader()
    async for part in client.runs.stream(
        thread["thread_id"], "main", input=ask("go"), stream_mode=["messages-tuple", "values"], stream_resumable=True
    ):
        reader.take(part)
    expected = "".join(f"{number} " for number in range(400))
    print("text", reader.texts[""] == expected, reader.values["messages"][-1]["content"] == expected)
    print("ids", len(reader.ids) == len(set(reader.ids)))


async def interrupt() -> None:
    thread = (await client.threads.create())["thread_id"]
    for decision in [{"type": "approve"}, {"type": "reject", "message": "not today"}]:
        reader = Reader()
        async for part in client.runs.stream(thread, "main", input=ask("go"), stream_mode=["updates", "values"]):
            reader.take(part)
        (asked,) = reader.interrupts
        print("asked", asked["value"]["action_requests"], reader.events[-1])
        state = await client.threads.get_state(thread)
        print("state", state["next"], state["tasks"][0]["interrupts"] == [asked])
        print("thread", (await client.threads.get(thread))["status"])
        reader, resumed = Reader(), {"resume": {"decisions": [decision]}}
        async for part in client.runs.stream(thread, "main", command=resumed, stream_mode=["updates", "values"]):
            reader.take(part)
        print("then", [shown(message) for message in reader.values["messages"][-2:]], reader.events[-1])
    waited = await client.runs.wait(thread, "main", input=ask("go"))
    print("waited", list(waited))
    print("resumed", [shown(one) for one in (await client.runs.wait(thread, "main", command={"resume": True}))["messages"][-1:]])


async def cancel() -> None:
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread, "main", input=ask("go"))
    while (await client.runs.get(thread, run["run_id"]))["status"] != "running":
        await asyncio.sleep(0.02)
    try:
        await client.runs.create(thread, "main", input=ask("go"), multitask_strategy="reject")
    except APIStatusError as error:
        print("rejected", error.response.status_code, "detail" in error.body)
    await client.runs.cancel(thread, run["run_id"], wait=True)
    print("run", (await client.runs.get(thread, run["run_id"]))["status"])
    reader = Reader()
    async for part in client.runs.join_stream(thread, run["run_id"], stream_mode="values"):
        reader.take(part)
        failure = part.data
    print("stream", reader.events[-1], failure["error"])


async def refusals() -> None:
    async def refused(work) -> None:
        try:
            await work
        except APIStatusError as error:
            print(error.response.status_code, error.body["detail"])
        except httpx.HTTPStatusError as error:
            print(error.response.status_code, error.response.json()["detail"])

    async def read(**kwargs) -> None:
        async for _ in client.runs.stream(None, "main", **kwargs):
            pass

    await refused(client.threads.get("no-such-thread"))
    await refused(client.runs.get("no-such-thread", "run-1"))
    await refused(read(input=ask("go"), stream_mode="events"))
    await refused(read(input=ask("go"), interrupt_before=["tools"]))
    await refused(read(input={"messages": [{"role": "ai", "content": "I said"}]}))
    await refused(client.runs.wait(None, "unknown", input=ask("go")))
    await refused(client.store.get_item(["a"], "b"))
    await refused(get_client(url=f"{url}/lg", api_key="wrong").assistants.search())


async def parse() -> None:
    """Streams of many fleets, each in a file: the parser of the SDK and LangChain's messages read them."""
    ends, answered = set(), 0
    for file in sorted(Path(url).iterdir()):
        parts, decoder = [], SSEDecoder()
        for line in file.read_bytes().splitlines():
            if part := decoder.decode(line):
                parts.append(part)
        answered += answers_are_whole(parts)
        ends.add(f"{parts[0].event} {parts[-1].event}")
    print(*sorted(ends), answered > 0)


def answers_are_whole(parts: list) -> int:
    """Checks that the chunks of each answer are the message in the updates; returns how many there were."""
    answers: dict[str, AIMessageChunk] = {}
    whole = {}
    for part in parts:
        mode = part.event.split("|")[0]
        if mode == "messages":
            message, _ = part.data
            if message["type"] == "AIMessageChunk":
                chunk = AIMessageChunk(**message)
                answers[chunk.id] = answers[chunk.id] + chunk if chunk.id in answers else chunk
            elif message["type"] == "remove":
                del answers[message["id"]]
            else:
                convert_to_messages([message])
        elif mode == "updates":
            for node in part.data.values():
                for message in node["messages"] if isinstance(node, dict) else []:
                    whole[message["id"]] = message, convert_to_messages([message])[0]
    for id, answer in answers.items():
        if id not in whole:
            continue
        raw, message = whole[id]
        assert answer.text == message.text, (answer, message)
        calls = lambda one: [(call["name"], call["id"], call["args"]) for call in one.tool_calls]
        assert calls(answer) == calls(message), (answer.tool_calls, message.tool_calls)
        assert answer.usage_metadata == raw["usage_metadata"], (answer.usage_metadata, raw)
        assert answer.additional_kwargs == raw["additional_kwargs"], (answer, raw)
    return len(answers.keys() & whole.keys())


asyncio.run(globals()[scenario]())
