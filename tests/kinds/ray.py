"""What a head of Ray answers to its operator, where pods are only played.

The operator asks the head over HTTP, through the API server, what became of a job and of the
applications it serves. One server on an address of this machine answers for all heads; a kubelet
gives their pods this address.
"""

from __future__ import annotations

import json
import socket
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PORTS = (8265, 8000)  # the dashboard, and the proxy of what is served
# Jobs by identity, as the operator made it up; what is not here was not submitted yet.
jobs: dict[str, dict[str, Any]] = {}
# Applications by name, of all heads.
applications: dict[str, dict[str, Any]] = {}


@cache
def address() -> str:
    """An address of this machine that the API server lets requests go to: not the loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("10.255.255.255", 1))  # sends nothing
        return str(probe.getsockname()[0])


@cache
def start() -> None:
    """Answers from now on, until this process ends."""
    for port in PORTS:
        server = ThreadingHTTPServer((address(), port), _Answers)
        threading.Thread(target=server.serve_forever, daemon=True).start()


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = self.path.strip("/")
        if path.startswith("api/jobs/"):
            found = jobs.get(path.removeprefix("api/jobs/"))
            self._answer(found or {}, 200 if found else 404)
        elif path.startswith("api/serve/applications"):
            self._answer({"applications": applications})
        else:
            self._answer({})

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer({})

    def do_POST(self) -> None:
        self.do_PUT()

    def _answer(self, body: dict[str, Any], status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""
