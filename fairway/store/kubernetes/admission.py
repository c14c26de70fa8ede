"""Admission policies on a real server: applied by the hub, or by an administrator.

The right to write such policies is the right to change any object of a cluster, so a hub need not
have it: then an administrator applies the policies at installation.
"""

from __future__ import annotations

import msgspec

from fairway.api.errors import Forbidden
from fairway.schema.node import JsonObject
from fairway.store.interface import BY_HUB, Patch, ResourceKey
from fairway.store.keys import ADMISSION, SELF_REVIEWS
from fairway.store.kubernetes.store import KubernetesStore

API_VERSION = f"{ADMISSION}/v1"


def policies_of(kind: str) -> ResourceKey:
    """The resource of a kind of policy or binding."""
    ending = "ies" if kind.endswith("y") else f"{kind[-1]}s"
    return ResourceKey(ADMISSION, "v1", f"{kind[:-1].lower()}{ending}")


async def put(store: KubernetesStore, body: JsonObject) -> None:
    """Applies a policy or binding; a hub without that right requires that it exists."""
    resource, name = policies_of(body["kind"]), body["metadata"]["name"]
    try:
        await store.patch(resource, name, Patch(type="apply", body=body, force=True), write=BY_HUB)
    except Forbidden:
        await store.get(resource, name)


async def own_name(store: KubernetesStore) -> str:
    """The server's user name for this hub."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = msgspec.json.decode(await store.api.create(SELF_REVIEWS, body))
    return str(answer["status"]["userInfo"]["username"])
