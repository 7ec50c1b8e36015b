"""Graphs whose model is scripted: no key, no network."""

import asyncio
from typing import Any, Iterator

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt


class Scripted(BaseChatModel):
    """Says chunks one by one: a text, or parts of chunks."""

    chunks: list[Any]
    pause: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _parts(self) -> Iterator[AIMessageChunk]:
        for chunk in self.chunks:
            yield AIMessageChunk(content=chunk) if isinstance(chunk, str) else AIMessageChunk(**chunk)

    def _generate(self, messages: list[BaseMessage], stop=None, run_manager=None, **kwargs) -> ChatResult:
        whole = AIMessageChunk(content="")
        for part in self._parts():
            whole += part
        message = AIMessage(content=whole.content, tool_calls=whole.tool_calls, usage_metadata=whole.usage_metadata)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _astream(self, messages, stop=None, run_manager: AsyncCallbackManagerForLLMRun | None = None, **kwargs):
        for part in self._parts():
            await asyncio.sleep(self.pause)
            chunk = ChatGenerationChunk(message=part)
            if run_manager:
                await run_manager.on_llm_new_token(part.content if isinstance(part.content, str) else "", chunk=chunk)
            yield chunk


def call(name: str, arguments: list[str], id: str, index: int = 0) -> list[dict]:
    """The chunks of a tool call with streamed arguments."""
    first = {"content": "", "tool_call_chunks": [{"name": name, "args": arguments[0], "id": id, "index": index}]}
    rest = [{"content": "", "tool_call_chunks": [{"name": None, "args": part, "id": None, "index": index}]} for part in arguments[1:]]
    return [first, *rest]


USAGE = {"content": "", "usage_metadata": {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18, "input_token_details": {"cache_read": 3}}}


@tool
async def search(query: str) -> str:
    """Searches."""
    get_stream_writer()({"progress": query})
    return f"found {query}"


def last(state: MessagesState) -> str:
    return state["messages"][-1].content


def loop(node, *tools):
    """A node that calls a model, and its tools."""
    graph = StateGraph(MessagesState)
    graph.add_node(node.__name__, node)
    graph.add_node("tools", ToolNode(list(tools)))
    graph.add_edge(START, node.__name__)
    graph.add_conditional_edges(node.__name__, tools_condition)
    graph.add_edge("tools", node.__name__)
    return graph.compile()


async def chat(state: MessagesState):
    messages = state["messages"]
    if isinstance(messages[-1], ToolMessage):
        model = Scripted(chunks=["It ", "is ", "so.", USAGE], pause=0.02)
    else:
        model = Scripted(chunks=[
            {"content": [{"type": "reasoning", "reasoning": "Hm.", "index": 0}]},
            "I look.", *call("search", ['{"que', 'ry": "a"}'], "call_1"), *call("search", ['{"query": "b"}'], "call_2", 1), USAGE,
        ])
    return {"messages": [await model.ainvoke(messages)]}


# An agent whose tool runs another graph, and whose node is one.

researcher = loop(chat, search)


@tool
async def task(description: str, subagent_type: str) -> str:
    """Asks a subagent."""
    answer = await researcher.ainvoke({"messages": [HumanMessage(description)]})
    return answer["messages"][-1].content


async def lead(state: MessagesState):
    messages = state["messages"]
    if isinstance(messages[-1], ToolMessage):
        model = Scripted(chunks=["Both ", "agree."])
    else:
        tasks = [
            *call("task", ['{"description": "north", ', '"subagent_type": "researcher"}'], "call_n"),
            *call("task", ['{"description": "south", "subagent_type": "researcher"}'], "call_s", 1),
        ]
        model = Scripted(chunks=["I ask two.", *tasks])
    return {"messages": [await model.ainvoke(messages)]}


def nested():
    """The answer is that of a subgraph."""
    graph = StateGraph(MessagesState)
    graph.add_node("helper", researcher)
    graph.add_edge(START, "helper")
    graph.add_edge("helper", END)
    return graph.compile()


# A person is asked.


@tool
async def send(to: str) -> str:
    """Sends a mail, if a person allows it."""
    decision = interrupt({"action": "send", "to": to})
    return f"sent to {to}" if decision == "approve" or decision is True else f"not sent: {decision}"


async def mail(state: MessagesState):
    messages = state["messages"]
    done = isinstance(messages[-1], ToolMessage)
    model = Scripted(chunks=["Done: ", messages[-1].content] if done else call("send", ['{"to": "you"}'], "call_send"))
    return {"messages": [await model.ainvoke(messages)]}


async def ask(state: MessagesState):
    return {"messages": [AIMessage(f"You said {interrupt('Which city?')}.")]}


async def broken(state: MessagesState):
    await Scripted(chunks=["I try."]).ainvoke(state["messages"])
    raise ValueError("the node is broken")


async def slow(state: MessagesState):
    said = [f"{number} " for number in range(400)]
    return {"messages": [await Scripted(chunks=said, pause=0.05).ainvoke(state["messages"])]}


async def counting(state: MessagesState):
    said = [f"{number} " for number in range(300)]
    return {"messages": [await Scripted(chunks=said, pause=0.004).ainvoke(state["messages"])]}


async def plain(state: MessagesState):
    return {"messages": [AIMessage(f"You said: {last(state)}")]}


def single(node):
    graph = StateGraph(MessagesState)
    graph.add_node(node.__name__, node)
    graph.add_edge(START, node.__name__)
    graph.add_edge(node.__name__, END)
    return graph.compile()


GRAPHS = {
    "agent": researcher, "team": loop(lead, task), "nested": nested(), "mailer": loop(mail, send), "ask": single(ask),
    "broken": single(broken), "slow": single(slow), "counting": single(counting), "plain": single(plain),
}
globals().update(GRAPHS)
