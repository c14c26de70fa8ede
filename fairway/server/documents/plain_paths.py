"""Plain paths: version, health, metrics, OpenAPI."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass, field

import fairway
from fairway.resources.catalogue import Catalogue
from fairway.server.documents import openapi, openapi_v2
from fairway.server.metrics import Metrics
from fairway.server.wire.exchange import Request, Response, json_response, text_response

# The Kubernetes version whose API conventions are served; clients adapt to it.
KUBERNETES = ("1", "36", "v1.36.4")


@dataclass(slots=True, kw_only=True)
class Documents:
    """Answers about the hub itself. `ready` says for each part why it is not ready, or ""."""

    catalogue: Catalogue
    metrics: Metrics
    ready: Callable[[], dict[str, str]]
    gather: Callable[[], None]  # updates the gauges
    _cached: dict[str, tuple[int, Response]] = field(default_factory=dict)

    async def answer(self, request: Request) -> Response | None:
        path = request.path.rstrip("/") or "/"
        match path:
            case "/":
                return json_response({"paths": _PATHS})
            case "/version":
                return json_response(_version())
            case "/healthz" | "/livez":
                return text_response("ok")
            case "/readyz":
                return self._readiness()
            case "/metrics":
                self.gather()
                return Response(
                    body=self.metrics.render(),
                    content_type="text/plain; version=0.0.4; charset=utf-8",
                )
            case "/openapi/v2":
                return self._openapi_v2(request)
            case "/openapi/v3":
                return self._keep(path, lambda: json_response(openapi.index(list(self.catalogue))))
        if path.startswith("/openapi/v3/"):
            return self._openapi_v3(path)
        return None

    def _readiness(self) -> Response:
        parts = self.ready()
        if not any(parts.values()):
            return text_response("ok")
        lines = [
            f"[-]{name} failed: {fault}" if fault else f"[+]{name} ok"
            for name, fault in parts.items()
        ]
        return text_response("\n".join([*lines, "readyz check failed"]), status=503)

    def _openapi_v3(self, path: str) -> Response | None:
        match path.removeprefix("/openapi/v3/").split("/"):
            case ["api", version]:
                group = ""
            case ["apis", group, version]:
                pass
            case _:
                return None
        served = [
            resource
            for resource in self.catalogue
            if (resource.group, resource.version) == (group, version)
        ]
        if not served:
            return None
        return self._keep(path, lambda: json_response(openapi.document(served)))

    def _openapi_v2(self, request: Request) -> Response:
        if "protobuf" in request.header("accept"):
            return self._keep("v2 protobuf", self._protobuf)
        return self._keep("v2", lambda: json_response(openapi_v2.document(list(self.catalogue))))

    def _protobuf(self) -> Response:
        body = openapi_v2.protobuf(list(self.catalogue))
        return Response(body=body, content_type=openapi_v2.PROTOBUF)

    def _keep(self, path: str, make: Callable[[], Response]) -> Response:
        """A document is made once for each state of the catalogue."""
        revision, response = self._cached.get(path, (-1, None))
        if response is None or revision != self.catalogue.revision:
            response = make()
            self._cached[path] = (self.catalogue.revision, response)
        return response


def _version() -> dict[str, str]:
    major, minor, release = KUBERNETES
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{release}+fairway-{fairway.__version__}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


_PATHS = [
    "/api",
    "/apis",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/readyz",
    "/version",
]
