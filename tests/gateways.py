"""A real proxy in front of clusters, with the weights that an HTTPRoute gives their backends.

The proxy is Envoy. It does what the route says and nothing besides: no retries, no health checks,
no ejection of hosts, so that every request that fails is one that a weight sent to a wrong place.
What stands for a cluster is a real server that listens while the cluster has replicas to serve.
Everything here blocks, which costs a hub on virtual time nothing.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from tests.kubernetes.control_plane import bound_to_us
from tests.ports import own_ports
from tests.waiting import seen_at_last

_HTTP = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_ROUTER = "envoy.extensions.filters.http.router.v3.Router"
_ROUTES = "envoy.config.route.v3.RouteConfiguration"


class Front:
    """Where a cluster can be reached: it answers with its name, or refuses connections."""

    def __init__(self, name: str) -> None:
        self.name = name
        (self.port,) = own_ports(1)
        self._server: HTTPServer | None = None

    def serve(self, is_open: bool) -> None:
        """Listens, or stops listening."""
        if is_open and self._server is None:
            self._server = HTTPServer(("127.0.0.1", self.port), _handler(self.name))
            arguments = {"poll_interval": 0.01}
            threading.Thread(target=self._server.serve_forever, kwargs=arguments).start()
        elif not is_open and self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


def _handler(name: str) -> type[BaseHTTPRequestHandler]:
    class Answer(BaseHTTPRequestHandler):
        wbufsize = -1  # in one packet

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(name)))
            self.end_headers()
            self.wfile.write(name.encode())

        def log_message(self, *arguments: Any) -> None:
            """Says nothing."""

    return Answer


class Proxy:
    """A running Envoy, whose routes are a file that it watches."""

    def __init__(self, folder: Path, port: int, admin: int) -> None:
        self._folder = folder
        self._version = 0
        self._port = port
        self._admin = admin
        self._weights: dict[str, int] = {}

    def follow(self, route: Mapping[str, Any]) -> None:
        """Shares requests as the first rule of a route says, from now on."""
        references = route["spec"]["rules"][0]["backendRefs"]
        weights = {reference["name"]: reference.get("weight", 1) for reference in references}
        if weights == self._weights:
            return
        self._weights = weights
        self._version += 1
        write_routes(self._folder, weights)
        # The first version was read when the proxy started.
        seen_at_last(self._updates, lambda count: count > self._version, "new weights")

    def ask(self, count: int) -> Counter[str]:
        """Sends requests one after another: how many each cluster answered, or "" if it failed."""
        answers: Counter[str] = Counter()
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        for _ in range(count):
            connection.request("GET", "/")
            answer = connection.getresponse()
            text = answer.read().decode()
            answers[text if answer.status == 200 else ""] += 1
        connection.close()
        return answers

    def _updates(self) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self._admin, timeout=5)
        try:
            connection.request("GET", "/stats?filter=rds.routes.update_success")
            return int(connection.getresponse().read().split(b":")[1])
        except (OSError, IndexError):
            return 0  # not up yet
        finally:
            connection.close()

    def wait(self, process: subprocess.Popen[bytes]) -> None:
        """Until it has its first routes."""
        is_up = seen_at_last(
            lambda: self._updates() or process.poll() is not None, bool, "the proxy"
        )
        assert is_up is not True, (self._folder / "proxy.log").read_text()


@contextmanager
def proxy_before(program: Path, folder: Path, fronts: Mapping[str, Front]) -> Iterator[Proxy]:
    """A proxy whose backends have these names and places."""
    port, admin = own_ports(2)
    (folder / "routes").mkdir(parents=True)
    write_routes(folder, dict.fromkeys(fronts, 1))
    config = json.dumps(_bootstrap(folder, port, admin, fronts))
    options = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "warn"]
    command = [str(program), "--config-yaml", config, *options]
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen(bound_to_us(command), stdout=log, stderr=log)
    proxy = Proxy(folder, port, admin)
    try:
        proxy.wait(process)
        yield proxy
    finally:
        process.kill()
        process.wait()
        for front in fronts.values():
            front.serve(False)


def write_routes(folder: Path, weights: Mapping[str, int]) -> None:
    """The file with the weights; it is replaced as a whole, which is what the proxy watches for."""
    clusters = [{"name": name, "weight": weight} for name, weight in weights.items()]
    route = {"match": {"prefix": "/"}, "route": {"weighted_clusters": {"clusters": clusters}}}
    table = {
        "@type": f"type.googleapis.com/{_ROUTES}",
        "name": "routes",
        "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}],
    }
    new = folder / "routes.new"
    new.write_text(json.dumps({"resources": [table]}))
    new.replace(folder / "routes" / "routes.json")


def _bootstrap(folder: Path, port: int, admin: int, fronts: Mapping[str, Front]) -> dict[str, Any]:
    source = {"path_config_source": {"path": str(folder / "routes" / "routes.json")}}
    manager = {
        "@type": f"type.googleapis.com/{_HTTP}",
        "stat_prefix": "in",
        "rds": {"route_config_name": "routes", "config_source": source},
        "http_filters": [
            {"name": "router", "typed_config": {"@type": f"type.googleapis.com/{_ROUTER}"}}
        ],
    }
    listener = {
        "address": _address(port),
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }
    clusters = [
        {
            "name": name,
            "connect_timeout": "1s",
            "load_assignment": {
                "cluster_name": name,
                "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(front.port)}}]}],
            },
        }
        for name, front in fronts.items()
    ]
    return {
        "node": {"id": "proxy", "cluster": "test"},
        "admin": {"address": _address(admin)},
        "static_resources": {"listeners": [listener], "clusters": clusters},
    }


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}
