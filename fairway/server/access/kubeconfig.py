"""The kubeconfig a hub writes into its data folder, for `kubectl` and `fairway`.

It holds the admin token, so its mode is 0600. It is replaced atomically: a client that reads it
while a hub starts sees the old file or the new one.
"""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

from fairway.server.access.private_files import write_private

FILE_NAME = "kubeconfig"
CONTEXT = "fairway"


def write(directory: Path, *, server: str, token: str, authority: bytes | None = None) -> Path:
    """Writes DIR/kubeconfig for the admin; `authority` is the PEM of the server's authority."""
    cluster = {"server": server}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [
            {
                "name": CONTEXT,
                "context": {"cluster": CONTEXT, "user": "admin", "namespace": "default"},
            }
        ],
        "current-context": CONTEXT,
        "preferences": {},
    }
    path = directory / FILE_NAME
    write_private(path, yaml.safe_dump(content, sort_keys=False).encode())
    return path
