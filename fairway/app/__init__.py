"""The composition root: the only place where concrete parts are chosen and put together."""

from fairway.agent.drivers.local.isolation import RefusedFolder
from fairway.app.api_server import SignInOptions
from fairway.app.embedded_store import (
    load_demo,
    open_store,
    prepare_store,
    settle_files,
    settle_memory,
    settle_threads,
)
from fairway.app.hub import Hub, HubOptions, open_hub
from fairway.hub.on_kubernetes import OnKubernetes
from fairway.hub.trace_collector import TraceOptions

__all__ = [
    "Hub",
    "HubOptions",
    "OnKubernetes",
    "RefusedFolder",
    "SignInOptions",
    "TraceOptions",
    "load_demo",
    "open_hub",
    "open_store",
    "prepare_store",
    "settle_files",
    "settle_memory",
    "settle_threads",
]
