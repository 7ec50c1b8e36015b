"""The official Python client, unchanged, over one of the bindings: prints what it gets."""

import asyncio
import json
import sys
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import httpx
from a2a.client import A2ACardResolver, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.client_factory import TransportProtocol
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from google.protobuf.json_format import MessageToDict

URL, TOKEN, BINDING = [*sys.argv[1:], "JSONRPC"][:3]
EXTENSION = "https://github.com/mainstem-rs/mainstem/a2a/events/v1"


def message(*parts, **more):
    parts = [Part(text=part) if isinstance(part, str) else part for part in parts]
    return Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=parts, **more)


def request(*parts, configuration=None, **more):
    return SendMessageRequest(message=message(*parts, **more), configuration=configuration)


def state(status):
    return TaskState.Name(status.state).removeprefix("TASK_STATE_").lower()


def texts(parts):
    return "".join(part.text for part in parts)


def shown(event):
    """One line for a frame, without ids."""
    match event.WhichOneof("payload"):
        case "task":
            artifacts = [texts(artifact.parts) for artifact in event.task.artifacts]
            said = [texts(message.parts) for message in event.task.history]
            return f"task {state(event.task.status)} {said} {artifacts}"
        case "status_update":
            update = event.status_update
            source = MessageToDict(update.metadata).get(EXTENSION)
            cause = f" {source['type']} of {source.get('source', {}).get('agentId', 'main')}" if source else ""
            why = f" {texts(update.status.message.parts)!r}" if update.status.HasField("message") else ""
            return f"status {state(update.status)}{cause}{why}"
        case "artifact_update":
            update = event.artifact_update
            flags = ("+" if update.append else "") + ("." if update.last_chunk else "")
            return f"artifact {flags} {texts(update.artifact.parts)!r}"
        case other:
            return other


async def read(stream, until=None):
    """Prints frames to the end, or to the first that has a text; returns the task's and context's ids."""
    ids = (None, None)
    async for event in stream:
        if event.HasField("task"):
            ids = (event.task.id, event.task.context_id)
        print(" ", shown(event))
        if until and until in shown(event):
            break
    return ids


async def main():
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(timeout=20) as anybody:
        card = await A2ACardResolver(anybody, URL).get_agent_card()
        print("card", card.name, [skill.id for skill in card.skills], sorted(card.security_schemes))
    http = httpx.AsyncClient(headers=headers, timeout=20)
    config = ClientConfig(httpx_client=http, supported_protocol_bindings=[BINDING])
    client = ClientFactory(config).create(card)
    plain = ClientFactory(
        ClientConfig(httpx_client=http, supported_protocol_bindings=[BINDING], streaming=False)
    ).create(card)
    extended = await client.get_extended_agent_card(GetExtendedAgentCardRequest())
    print("extended", extended.name, [skill.id for skill in extended.skills])

    print("send")
    await read(plain.send_message(request("greet me")))
    print("stream")
    task, context = await read(client.send_message(request("greet me")))
    print("again in its context")
    again, same = await read(client.send_message(request("greet me", context_id=context)))
    print("  same context:", same == context, "other task:", again != task)
    got = await client.get_task(GetTaskRequest(id=task, history_length=0))
    print("get", state(got.status), len(got.history), [texts(one.parts) for one in got.artifacts])
    listed = await client.list_tasks(ListTasksRequest(context_id=context, page_size=1))
    page = ListTasksRequest(context_id=context, page_size=1, page_token=listed.next_page_token)
    rest = await client.list_tasks(page)
    print("list", [one.id == again for one in listed.tasks], listed.total_size, rest.tasks[0].id != again)

    print("children, for those who ask")
    asks = ClientCallContext(service_parameters={"A2A-Extensions": EXTENSION})
    await read(client.send_message(request("delegate this"), context=asks))
    print("children, for others")
    await read(client.send_message(request("delegate this")))

    print("drop and subscribe")
    task, _ = await read(client.send_message(request("be slow")), until="first")
    await read(client.subscribe(SubscribeToTaskRequest(id=task)))
    try:
        await read(client.subscribe(SubscribeToTaskRequest(id=task)))
    except Exception as error:
        print("  over:", type(error).__name__)

    print("cancel")
    task, _ = await read(client.send_message(request("hang now")), until="I hang")
    print(" ", state((await client.cancel_task(CancelTaskRequest(id=task))).status))
    for what, call in [
        ("cancel", client.cancel_task(CancelTaskRequest(id=task))),
        ("unknown", client.get_task(GetTaskRequest(id="no-such-task"))),
        ("over", read(client.send_message(request("more", task_id=task)))),
        ("empty", read(client.send_message(request("")))),
    ]:
        try:
            await call
        except Exception as error:
            print(" ", what, type(error).__name__)

    print("yes")
    task, context = await read(client.send_message(request("ask me")))
    await read(client.send_message(request("yes", task_id=task, context_id=context)))
    print("no, as data")
    waiting, _ = await read(plain.send_message(request("ask me")))
    got = await client.get_task(GetTaskRequest(id=waiting))
    ask = MessageToDict(got.status.message.parts[1].data)
    print(" ", sorted(ask), ask["toolCalls"][0]["name"], ask["toolCalls"][0]["input"])
    answer = Part()
    answer.data.struct_value.update({"confirmId": ask["confirmId"], "approved": False, "reason": "too loud"})
    await read(client.send_message(request(answer, task_id=waiting)))
    print("failure")
    await read(client.send_message(request("fail now")))
    await pushes(client)
    await client.close()


async def pushes(client):
    received = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            received.append((body, self.headers["X-A2A-Notification-Token"], self.headers["Authorization"]))
            self.send_response(503 if len(received) == 1 else 204)
            self.end_headers()

        def log_message(self, *_):
            pass

    print("push")
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/hook"
    config = TaskPushNotificationConfig(url=url, token="t0ken")
    config.authentication.scheme, config.authentication.credentials = "Bearer", "s3cret"
    configuration = SendMessageConfiguration(task_push_notification_config=config)
    await read(client.send_message(request("greet me", configuration=configuration)))
    for _ in range(200):
        if received and received[-1][0]["task"]["status"]["state"] == "TASK_STATE_COMPLETED":
            break
        await asyncio.sleep(0.05)
    print(" ", sorted({tuple(headers) for _, *headers in received}))
    print("  last", received[-1][0]["task"]["status"]["state"], received[-1][0]["task"]["artifacts"][0]["parts"])
    task, _ = await read(client.send_message(request("hang now")), until="I hang")
    made = await client.create_task_push_notification_config(
        TaskPushNotificationConfig(task_id=task, id="mine", url=url)
    )
    find = GetTaskPushNotificationConfigRequest(task_id=task, id="mine")
    got = await client.get_task_push_notification_config(find)
    listing = ListTaskPushNotificationConfigsRequest(task_id=task)
    listed = await client.list_task_push_notification_configs(listing)
    print("  made", made == got, len(listed.configs))
    await client.delete_task_push_notification_config(
        DeleteTaskPushNotificationConfigRequest(task_id=task, id="mine")
    )
    print("  left", len((await client.list_task_push_notification_configs(listing)).configs))
    for bad in ["http://10.0.0.1/hook", "file:///etc/passwd"]:
        try:
            await client.create_task_push_notification_config(TaskPushNotificationConfig(task_id=task, url=bad))
        except Exception as error:
            print("  refused:", type(error).__name__)
    await client.cancel_task(CancelTaskRequest(id=task))


asyncio.run(main())
