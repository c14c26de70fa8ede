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


def mutating(name: str, spec: JsonObject) -> JsonObject:
    """A policy that changes what is written; nothing is written while it cannot be evaluated."""
    return {
        "apiVersion": API_VERSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"failurePolicy": "Fail", "reinvocationPolicy": "IfNeeded", **spec},
    }


def binding_of(policy: JsonObject) -> JsonObject:
    """The binding that puts a policy in force for all objects that it matches."""
    name = policy["metadata"]["name"]
    return {
        "apiVersion": API_VERSION,
        "kind": f"{policy['kind']}Binding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    }


async def put(store: KubernetesStore, body: JsonObject) -> JsonObject:
    """Applies a policy or binding; a hub without that right requires that it exists.

    Returns it as it is on the server.
    """
    resource, name = policies_of(body["kind"]), body["metadata"]["name"]
    patch = Patch(type="apply", body=body, force=True)
    try:
        stored, _ = await store.patch(resource, name, patch, write=BY_HUB)
    except Forbidden:
        stored = await store.get(resource, name)
    return stored.object()


async def own_name(store: KubernetesStore) -> str:
    """The server's user name for this hub."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = msgspec.json.decode(await store.api.create(SELF_REVIEWS, body))
    return str(answer["status"]["userInfo"]["username"])
