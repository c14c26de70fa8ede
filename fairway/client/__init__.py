"""The Python client of a hub, or of any Kubernetes API server.

    from fairway.client import Client

    with Client.connect() as client:
        for workload in client.list("workloads", namespace="default").items:
            print(workload["metadata"]["name"])

`AsyncClient` is the implementation; `Client` has the same calls without `await`. This package knows
the wire conventions and the typed kinds of `fairway.api`. It knows nothing of stores or servers,
and only `transport` uses the HTTP library.
"""

from fairway.client.access import Access, ExecPlugin
from fairway.client.asynchronous import AsyncClient
from fairway.client.errors import ClientError, ConfigError, ConnectionFailed, UnknownKind
from fairway.client.kubeconfig import load_access
from fairway.client.synchronous import Client
from fairway.client.wire import Event, Listing, PatchType, Scope

__all__ = [
    "Access",
    "AsyncClient",
    "Client",
    "ClientError",
    "ConfigError",
    "ConnectionFailed",
    "Event",
    "ExecPlugin",
    "Listing",
    "PatchType",
    "Scope",
    "UnknownKind",
    "load_access",
]
