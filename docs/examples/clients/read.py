"""Begins a run and prints what each agent says. Needs httpx and httpx-sse."""

import json
import os
import sys
import time

import httpx
from httpx_sse import connect_sse

SESSION = "/v1/sessions/from-python"
RETRY_SECONDS = 2
RETRIES = 30


def events(client, method, path, **request):
    """Yields the events of a stream; a frame without data sets the time to wait before a retry."""
    with connect_sse(client, method, SESSION + path, **request) as stream:
        stream.response.raise_for_status()
        if stream.response.status_code == 204:  # the run is over, and no event is left
            return
        for frame in stream.iter_sse():
            if frame.event == "end":
                return
            if frame.data:
                yield json.loads(frame.data)
    raise httpx.RemoteProtocolError("the stream ended before the run")


def run(client, text):
    begin = {"json": {"input": text}, "headers": {"Idempotency-Key": str(time.time_ns())}}
    last, failures = None, 0
    while True:
        try:
            if last:
                after = {"run": last["runId"], "after": last["seq"]}
                source = events(client, "GET", "/events", params=after)
            else:
                source = events(client, "POST", "/runs", **begin)
            for event in source:
                last, failures = event, 0
                yield event
            return
        except httpx.TransportError:
            failures += 1
            if failures > RETRIES:
                raise
            time.sleep(RETRY_SECONDS)


headers = {"Authorization": f"Bearer {os.environ['MAINSTEM_TOKEN']}"}
with httpx.Client(base_url=os.environ["MAINSTEM_SERVER"], headers=headers, timeout=None) as client:
    for event in run(client, " ".join(sys.argv[1:])):
        if event["type"] == "TEXT_BLOCK_DELTA":
            source = event.get("source", {"agentId": "main"})
            print(f"[{source['agentId']} {source.get('label', '')}] {event['delta']}")
