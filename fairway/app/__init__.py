"""The composition root: the only place where concrete parts are chosen and put together."""

from fairway.app.hub import Hub, HubOptions, open_hub
from fairway.app.on_kubernetes import OnKubernetes
from fairway.app.serving import SignInOptions
from fairway.app.storing import load_demo, open_store, prepare_store, settle_memory, settle_threads

__all__ = [
    "Hub",
    "HubOptions",
    "OnKubernetes",
    "SignInOptions",
    "load_demo",
    "open_hub",
    "open_store",
    "prepare_store",
    "settle_memory",
    "settle_threads",
]
