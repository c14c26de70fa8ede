# ruff: noqa: INP001 - a script of its own
"""Stands for a model server under load: tells as many waiting requests as it is told.

python examples/autoscaling/server.py &
curl -X POST http://127.0.0.1:8000/waiting/40
"""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry, Gauge, generate_latest

REGISTRY = CollectorRegistry()
WAITING = Gauge(
    "vllm:num_requests_waiting",
    "Requests that wait.",
    ["namespace", "pod", "model_name"],
    registry=REGISTRY,
).labels(namespace="default", pod="chat-0", model_name="tiny")


class Handler(BaseHTTPRequestHandler):
    """GET /metrics, and POST /waiting/NUMBER."""

    def do_GET(self) -> None:
        self._answer(generate_latest(REGISTRY))

    def do_POST(self) -> None:
        WAITING.set(float(self.path.rpartition("/")[2]))
        self._answer(b"ok\n")

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Says nothing of every scrape."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
