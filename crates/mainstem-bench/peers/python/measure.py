"""Reads the streams of the bench's scripted server with agents of other systems: the processor time
of a delta whose text reaches one caller.

    OPENAI_API_KEY=key OPENAI_BASE_URL=URL/v1 python measure.py CHILDREN DELTAS TIMES

with the URL that `mainstem-bench serve` prints. Each system runs the children as its documentation
says: LangGraph as parallel branches of one graph, streamed as `messages`; OpenAI's Agents SDK, which
has no stream of several agents, as one streamed run each, whose events go into one queue.
"""

import asyncio
import json
import operator
import statistics
import sys
import time
from typing import Annotated, TypedDict

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from openai import AsyncOpenAI
from openai.types.responses import ResponseTextDeltaEvent

MODEL = "gpt-4o-mini"
set_tracing_disabled(True)


class State(TypedDict):
    tasks: list[str]
    replies: Annotated[list[str], operator.add]


async def langgraph(tasks: list[str]) -> int:
    model = ChatOpenAI(model=MODEL, streaming=True)

    async def child(task: str):
        return {"replies": [(await model.ainvoke(task)).text]}

    graph = StateGraph(State)
    graph.add_node("child", child)
    graph.add_conditional_edges(START, lambda state: [Send("child", task) for task in state["tasks"]])
    graph.add_edge("child", END)
    seen = 0
    stream = graph.compile().astream({"tasks": tasks, "replies": []}, stream_mode="messages", subgraphs=True)
    async for _, (message, _) in stream:
        seen += bool(message.text)
    return seen


async def openai_agents(tasks: list[str]) -> int:
    model = OpenAIChatCompletionsModel(MODEL, AsyncOpenAI())
    queue: asyncio.Queue = asyncio.Queue(64)

    async def child(task: str):
        agent = Agent(name="child", instructions="", model=model)
        async for event in Runner.run_streamed(agent, task).stream_events():
            await queue.put(event)

    async def children():
        await asyncio.gather(*map(child, tasks))
        await queue.put(None)

    running = asyncio.create_task(children())
    seen = 0
    while (event := await queue.get()) is not None:
        seen += event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent)
    await running
    return seen


async def main() -> None:
    children, deltas, times = map(int, sys.argv[1:])
    task = json.dumps({"say": {"deltas": deltas, "pace": 0, "hangs": False}})
    for name, run in [("langgraph", langgraph), ("openai-agents", openai_agents)]:
        await run([task])  # the first connection is not counted
        figures = []
        for _ in range(times):
            before = time.process_time()
            seen = await run([task] * children)
            assert seen == children * deltas, f"{name}: {seen} of {children * deltas} deltas arrived"
            figures.append((time.process_time() - before) * 1e6 / seen)
        print(f"{name}: {statistics.median(figures):.1f} µs a delta")


if __name__ == "__main__":
    asyncio.run(main())
