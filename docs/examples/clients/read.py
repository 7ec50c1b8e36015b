"""Begins a run and prints what each agent says. Needs httpx and httpx-sse."""

import json
import os
import sys

import httpx
from httpx_sse import connect_sse

SESSION = "/v1/sessions/from-python"


def events(client, method, path, **request):
    """Yields the events of a stream; a frame without data sets the time to wait before a retry."""
    with connect_sse(client, method, SESSION + path, **request) as stream:
        stream.response.raise_for_status()
        for frame in stream.iter_sse():
            if frame.event == "end":
                return
            if frame.data:
                yield json.loads(frame.data)


def run(client, text):
    last = None
    try:
        for event in events(client, "POST", "/runs", json={"input": text}):
            last = event
            yield event
    except httpx.TransportError:
        # The run goes on, and so do we, behind the last event.
        query = {"run": last["runId"], "after": last["seq"]}
        yield from events(client, "GET", "/events", params=query)


headers = {"Authorization": f"Bearer {os.environ['MAINSTEM_TOKEN']}"}
with httpx.Client(base_url=os.environ["MAINSTEM_SERVER"], headers=headers, timeout=None) as client:
    for event in run(client, " ".join(sys.argv[1:])):
        if event["type"] == "TEXT_BLOCK_DELTA":
            source = event.get("source")
            print(f"[{source['path'] if source else 'main'}] {event['delta']}")
