"""Agents on the official Python server: each message says what its agent does.

Arguments: `rpc` or `rest`, and `poll` for a server that does not stream. Prints its address.
"""

import asyncio
import socket
import sys

import uvicorn
from a2a.helpers.proto_helpers import new_data_part, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette

KIND, *MORE = sys.argv[1:]
# The conversations, by context.
SAID = {}
# The tasks that were cancelled.
CANCELLED = []


def text(value):
    return new_text_message(value, role=Role.ROLE_AGENT)


class Agent(AgentExecutor):
    async def execute(self, context, queue):
        said = context.get_user_input()
        if said.startswith("message"):
            await queue.enqueue_event(new_text_message("Just a message.", context_id=context.context_id))
            return
        updater = TaskUpdater(queue, context.task_id, context.context_id)
        if not context.current_task:
            await queue.enqueue_event(
                Task(
                    id=context.task_id,
                    context_id=context.context_id,
                    status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
                    history=[context.message],
                )
            )
        before = SAID.setdefault(context.context_id, [])
        before.append(said)
        await updater.start_work(text("I begin."))
        await getattr(self, said.split()[0], self.answer)(updater, said, before)

    async def say(self, updater, *words, artifact="answer"):
        for number, word in enumerate(words):
            last = number == len(words) - 1
            parts = [Part(text=word)]
            await updater.add_artifact(parts, artifact_id=artifact, append=number > 0, last_chunk=last)
            await asyncio.sleep(0.02)

    async def stream(self, updater, said, before):
        await self.say(updater, "Paris ", "has ", "309 stations.")
        await updater.add_artifact(
            [new_data_part({"stations": 309}), Part(raw=b"png", media_type="image/png")], artifact_id="data"
        )
        await updater.complete()

    async def ask(self, updater, said, before):
        await updater.requires_input(text("Which city?"))

    async def fail(self, updater, said, before):
        await self.say(updater, "I try.")
        await updater.failed(text("the disk is full"))

    async def reject(self, updater, said, before):
        await updater.reject(text("not my field"))

    async def auth(self, updater, said, before):
        await updater.requires_auth(text("log in at https://login.example"))

    async def slow(self, updater, said, before):
        await self.say(updater, "one ", artifact="count")
        await asyncio.sleep(60)

    async def cut(self, updater, said, before):
        for number, word in enumerate(["one ", "two ", "three ", "four ", "five"]):
            await updater.add_artifact([Part(text=word)], artifact_id="count", append=number > 0)
            await asyncio.sleep(0.15)
        await updater.complete(text("Counted."))

    async def answer(self, updater, said, before):
        await updater.complete(text(f"You said {', then '.join(before)}."))

    async def cancels(self, updater, said, before):
        await updater.complete(text(f"{len(CANCELLED)} cancelled"))

    async def cancel(self, context, queue):
        CANCELLED.append(context.task_id)
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


class Cut:
    """Drops the connection of the first stream that has the word `two`."""

    def __init__(self, app):
        self.app, self.is_cut = app, False

    async def __call__(self, scope, receive, send):
        async def cutting(event):
            await send(event)
            if not self.is_cut and b"two " in event.get("body", b""):
                self.is_cut = True
                raise RuntimeError("cut, as asked")

        await self.app(scope, receive, cutting)


listener = socket.create_server(("127.0.0.1", 0))
url = f"http://127.0.0.1:{listener.getsockname()[1]}"
binding = {"rpc": "JSONRPC", "rest": "HTTP+JSON"}[KIND]
elsewhere = AgentInterface(url="http://127.0.0.1:1/rpc", protocol_binding="JSONRPC", protocol_version="1.0")
card = AgentCard(
    name="far",
    description="Does what it is told",
    version="1",
    supported_interfaces=[
        elsewhere,
        AgentInterface(url=f"{url}/api", protocol_binding=binding, protocol_version="1.0"),
    ],
    capabilities=AgentCapabilities(streaming="poll" not in MORE),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="all", name="All", description="All", tags=["all"])],
)
handler = DefaultRequestHandler(agent_executor=Agent(), task_store=InMemoryTaskStore(), agent_card=card)
routes = create_agent_card_routes(card)
if KIND == "rpc":
    routes += create_jsonrpc_routes(handler, rpc_url="/api")
else:
    routes += create_rest_routes(handler, path_prefix="/api")
app = Cut(Starlette(routes=routes))
server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
print(url, flush=True)
server.run(sockets=[listener])
