"""How to reach one server, and with which identity.

An `Access` is a value with everything a kubeconfig context says. Certificate files are read
already; token files are not, since they change while a process lives.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A program that prints credentials."""

    command: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    api_version: str = "client.authentication.k8s.io/v1"
    install_hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One server and one identity."""

    server: str
    namespace: str = "default"
    context: str = ""
    source: str = ""  # where this was found, for messages to people
    authority: bytes = field(default=b"", repr=False)  # PEM; empty: the system's own
    is_insecure: bool = False
    tls_server_name: str = ""
    proxy: str = ""
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    exec_plugin: ExecPlugin | None = None
