"""AgentScope's service of version 2, with a scripted model: no key, no network.

Prints a line of JSON when it is ready: its address, and the ids of its agents by their names. It
ends when its input does."""

import asyncio
import json
import logging
import os
import socket
import sys
import tempfile
import threading
import urllib.request
from typing import Literal

import uvicorn
from agentscope.app import create_app
from agentscope.app.message_bus import InMemoryMessageBus
from agentscope.app.storage import AsyncSQLAlchemyStorage
from agentscope.app.workspace_manager import IsolationPolicy, LocalWorkspaceManager
from agentscope.credential import CredentialBase
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import Base64Source, DataBlock, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultState
from agentscope.model import ChatModelBase, ChatResponse, ChatUsage
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.tool import FunctionTool, ToolChunk
from pydantic import BaseModel

USER = "tests"


class ScriptedCredential(CredentialBase):
    """Needs nothing."""

    type: Literal["scripted_credential"] = "scripted_credential"

    @classmethod
    def get_chat_model_class(cls):
        return ScriptedModel


def said(messages, role: str) -> list[str]:
    return [message.get_text_content() or "" for message in messages if message.role == role]


def results(messages) -> list[str]:
    """The texts of the results since the last message of the user."""
    latest = max(place for place, message in enumerate(messages) if message.role == "user")
    blocks = [block for message in messages[latest:] for block in message.get_content_blocks("tool_result")]
    text = lambda block: block.output if isinstance(block.output, str) else "".join(part.text for part in block.output if part.type == "text")
    return [text(block) for block in blocks]


class ScriptedModel(ChatModelBase):
    """Answers as its name says."""

    type = "scripted"

    class Parameters(BaseModel):
        pass

    def __init__(self, credential, model, parameters=None, **more) -> None:
        super().__init__(credential, model, parameters or self.Parameters(), **more)
        self.formatter = OpenAIChatFormatter()

    async def _call_api(self, model_name, messages, tools=None, tool_choice=None, **more):
        if any(tool["function"]["name"] == "generate_structured_output" for tool in tools or []):
            raise ValueError("only plain answers are scripted")
        return self._stream(getattr(self, f"_{model_name}")(messages, results(messages)))

    async def _stream(self, parts):
        response = ChatResponse(content=[], is_last=False)
        pieces = 0
        async for part in parts:
            pieces += 1
            block = part
            if isinstance(part, str):
                block = TextBlock(text=part, id=f"text-{response.id}")
                response.append_text(part, block.id)
            elif isinstance(part, ToolCallBlock):
                response.append_tool_call(part.id, part.name, part.input)
            else:
                response.content.append(part)
            yield ChatResponse(content=[block], is_last=False, id=response.id)
        usage = ChatUsage(input_tokens=11, output_tokens=pieces, time=0.1, cache_input_tokens=3)
        yield ChatResponse(content=response.content, is_last=True, id=response.id, usage=usage)

    async def _chat(self, messages, found):
        if found:
            for part in ["It ", "is ", "so: ", ", ".join(found), "."]:
                await asyncio.sleep(0.02)
                yield part
            return
        yield ThinkingBlock(thinking="Hm.")
        yield "I look."
        for number, query in enumerate(["a", "b"], 1):
            yield ToolCallBlock(id=f"call_{len(messages)}_{number}", name="search", input='{"query": ')
            yield ToolCallBlock(id=f"call_{len(messages)}_{number}", name="search", input=f'"{query}"}}')

    async def _echo(self, messages, found):
        yield "You said: "
        yield " | ".join(said(messages, "user"))

    async def _mailer(self, messages, found):
        if found:
            yield "Done: " + "; ".join(found)
            return
        for to in ["you", "me"]:
            yield ToolCallBlock(id=f"call_{to}", name="send", input=json.dumps({"to": to}))

    async def _picture(self, messages, found):
        yield DataBlock(source=Base64Source(data="aGVsbG8=", media_type="image/png"), name="p.png")

    async def _shows(self, messages, found):
        if found:
            yield "Seen."
            return
        yield ToolCallBlock(id="call_draw", name="draw", input="{}")

    async def _broken(self, messages, found):
        yield "I try."
        raise ValueError("the model is broken")

    async def _endless(self, messages, found):
        yield ToolCallBlock(id=f"call_{len(messages)}_{len(found)}", name="search", input='{"query": "more"}')

    async def _steady(self, messages, found):
        if not found:
            yield "I look."
            yield ToolCallBlock(id="call_steady", name="search", input='{"query": "a"}')
            return
        async for part in self._counted(messages, found):
            yield part

    async def _counted(self, messages, found):
        for number in range(40):
            await asyncio.sleep(0.03)
            yield f"{number} "

    async def _sender(self, messages, found):
        if found:
            yield "Done: " + "; ".join(found)
            return
        yield ToolCallBlock(id="call_you", name="send", input='{"to": "you"}')

    async def _slow(self, messages, found):
        for number in range(200):
            await asyncio.sleep(0.1)
            yield f"{number} "

    async def _counting(self, messages, found):
        for number in range(300):
            await asyncio.sleep(0.002)
            yield f"{number} "

    async def _asker(self, messages, found):
        if found:
            yield "You said: " + found[0]
            return
        yield ToolCallBlock(id="call_ask", name="ask_caller", input='{"question": "Where?"}')

    async def _silent(self, messages, found):
        for part in ():
            yield part


def search(query: str) -> ToolChunk:
    """Searches.

    Args:
        query (str): For what.
    """
    return ToolChunk(content=[TextBlock(text=f"found {query}")], state=ToolResultState.SUCCESS)


def send(to: str) -> ToolChunk:
    """Sends a message.

    Args:
        to (str): To whom.
    """
    return ToolChunk(content=[TextBlock(text=f"sent to {to}")], state=ToolResultState.SUCCESS)


def draw() -> ToolChunk:
    """Draws."""
    picture = DataBlock(source=Base64Source(data="aGVsbG8=", media_type="image/png"))
    return ToolChunk(content=[TextBlock(text="a dot"), picture], state=ToolResultState.SUCCESS)


def ask_caller(question: str) -> None:
    """Asks the caller, who runs it.

    Args:
        question (str): What.
    """


async def tools(user, agent, session):
    allow = PermissionDecision(behavior=PermissionBehavior.ALLOW, message="harmless")
    free = [FunctionTool(tool, is_read_only=True, permission=allow) for tool in (search, draw)]
    external = FunctionTool(ask_caller, is_read_only=True, permission=allow)
    external.is_external_tool = True
    return [*free, FunctionTool(send), external]


AGENTS = [
    "chat", "echo", "mailer", "sender", "asker", "picture", "shows", "broken", "silent", "endless", "slow", "steady",
    "counted", "counting",
]


def request(url: str, path: str, body: dict) -> dict:
    headers = {"content-type": "application/json", "x-user-id": USER}
    with urllib.request.urlopen(urllib.request.Request(f"{url}{path}", json.dumps(body).encode(), headers)) as response:
        return json.load(response)


def prepare(url: str) -> dict[str, str]:
    """Creates an agent for each script, whose model is that of its first session."""
    credential = request(url, "/credential/", {"data": {"type": "scripted_credential"}})["credential_id"]
    agents = {}
    for name in AGENTS:
        loop = {"react_config": {"max_iters": 3}} if name == "endless" else {}
        agents[name] = request(url, "/agent/", {"name": name, "system_prompt": "Be brief.", "chat_config": loop})["agent_id"]
        model = {"type": "scripted_credential", "credential_id": credential, "model": name, "parameters": {}}
        request(url, "/sessions/", {"agent_id": agents[name], "name": "first", "chat_model_config": model})
    agents["unset"] = request(url, "/agent/", {"name": "unset"})["agent_id"]
    return agents


def announce(server: uvicorn.Server, url: str) -> None:
    while not server.started:
        threading.Event().wait(0.02)
    print(json.dumps({"url": url, "agents": prepare(url)}), flush=True)


def end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    logging.disable(logging.CRITICAL)
    place = tempfile.mkdtemp(prefix="agentscope-")
    os.chdir(place)
    app = create_app(
        storage=AsyncSQLAlchemyStorage(f"sqlite+aiosqlite:///{place}/store.db"),
        message_bus=InMemoryMessageBus(),
        workspace_manager=LocalWorkspaceManager(f"{place}/files", isolation=IsolationPolicy.PER_SESSION),
        extra_credentials=[ScriptedCredential],
        extra_agent_tools=tools,
    )
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    threading.Thread(target=end_with_parent, daemon=True).start()
    threading.Thread(target=announce, args=(server, url), daemon=True).start()
    asyncio.run(server.serve(sockets=[listener]))


main()
