"""LangGraph's development server: in memory, without a key, a network or telemetry.

Prints its address when it is ready, and ends when its input does."""

import logging
import os
import sys
import threading
import time
import urllib.request
from pathlib import Path

os.environ.update(
    LANGGRAPH_NO_VERSION_CHECK="true", LANGSMITH_TRACING="false", LANGGRAPH_CLI_NO_ANALYTICS="1",
    LANGSMITH_API_KEY="", LANGGRAPH_CLOUD_LICENSE_KEY="", LOG_LEVEL="ERROR",
)
from langgraph_api.cli import _find_open_port, run_server  # noqa: E402

GRAPHS = ["agent", "team", "nested", "mailer", "ask", "broken", "slow", "counting", "plain"]
here = Path(__file__).resolve().parent
only = sys.argv[1:] or GRAPHS
graphs = {name: f"{here / 'graphs.py'}:{name}" for name in only}


def announce(url: str) -> None:
    while True:
        try:
            if urllib.request.urlopen(f"{url}/ok").status == 200:
                print(url, flush=True)
                return
        except OSError:
            time.sleep(0.05)


def end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_parent, daemon=True).start()
port = _find_open_port("127.0.0.1")
threading.Thread(target=announce, args=(f"http://127.0.0.1:{port}",), daemon=True).start()
logging.disable(logging.WARNING)
run_server("127.0.0.1", port, graphs=graphs, n_jobs_per_worker=8, disable_persistence=True, allow_blocking=True, server_level="error")
