"""The rights of an agent on its hub, and those of an agent that is only invited.

They are plain RBAC over service accounts, so they work on the embedded hub and on Kubernetes alike.
In its cluster's namespace, an agent can access its works, leases and token. Outside namespaces, it
can access the objects with its cluster's name, and read what every agent needs: the fleet's
settings and the rules of kinds.

All these objects have an owner reference to the Cluster object, and are deleted with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.api.kindrule import KINDS_GROUP
from fairway.api.meta import API_VERSION, GROUP, JsonObject
from fairway.api.names import report_name, work_namespace

AGENT = "fairway-agent"
GUEST = "fairway-join"  # the account of an invited agent, and the Secret in which it asks
CHUNKS_MOST = 32  # chunks that an agent may report: 64,000 nodes
_RBAC = "rbac.authorization.k8s.io"
_READING = ("get", "list", "watch")
_WRITING = ("create", "patch", "update")


def role_name(cluster: str) -> str:
    """The name of the agent's role for objects without a namespace."""
    return f"fairway:cluster:{cluster}"


def guest_objects(cluster: str, owner: JsonObject) -> list[JsonObject]:
    """An account that may read and update one Secret, and do nothing else."""
    rule = _rule("", ["secrets"], ("get", "update"), names=[GUEST])
    return [
        _object("v1", "Secret", GUEST, cluster, owner, type="fairway.dev/join"),
        _object("v1", "ServiceAccount", GUEST, cluster, owner),
        *_grant(GUEST, [rule], cluster, owner),
    ]


def agent_objects(cluster: str, owner: JsonObject) -> list[JsonObject]:
    """The account of a cluster's agent, and its rights."""
    own = [
        _rule(GROUP, ["works"], (*_READING, "create")),
        _rule(GROUP, ["works/status"], ("get", "patch", "update")),
        _rule("coordination.k8s.io", ["leases"], (*_READING, *_WRITING)),
        _rule("", ["serviceaccounts/token"], ("create",), names=[AGENT]),
        _rule("", ["serviceaccounts", "secrets"], ("delete",), names=[GUEST]),
    ]
    fleet_wide = [
        _rule(GROUP, ["clusters"], _READING, names=[cluster]),
        _rule(GROUP, ["clusters/status"], ("get", "patch", "update"), names=[cluster]),
        _rule(GROUP, ["clusters/stream"], ("create",), names=[cluster]),
        _rule(
            GROUP,
            ["clusterreports"],
            ("get", *_WRITING, "delete"),
            names=[
                report_name(cluster, chunk, is_difference=is_difference)
                for chunk in range(CHUNKS_MOST)
                for is_difference in (False, True)
            ],
        ),
        _rule(GROUP, ["fleets"], _READING, names=["fleet"]),
        _rule(KINDS_GROUP, ["kindrules"], _READING),
    ]
    return [
        _object("v1", "ServiceAccount", AGENT, cluster, owner),
        *_grant(AGENT, own, cluster, owner),
        *_grant(role_name(cluster), fleet_wide, cluster, owner, is_everywhere=True),
    ]


def owner_of(cluster: JsonObject) -> JsonObject:
    """An owner reference to a Cluster object."""
    metadata = cluster["metadata"]
    identity = {"name": metadata["name"], "uid": metadata["uid"]}
    return {"apiVersion": API_VERSION, "kind": "Cluster", **identity}


def _grant(
    name: str,
    rules: Sequence[JsonObject],
    cluster: str,
    owner: JsonObject,
    *,
    is_everywhere: bool = False,
) -> list[JsonObject]:
    """A role and its binding to the account, in the cluster's namespace or everywhere."""
    kind = "ClusterRole" if is_everywhere else "Role"
    account = AGENT if is_everywhere else name
    subject = {"kind": "ServiceAccount", "name": account, "namespace": work_namespace(cluster)}
    reference = {"apiGroup": _RBAC, "kind": kind, "name": name}
    fields = {"subjects": [subject], "roleRef": reference}
    return [
        _object(f"{_RBAC}/v1", kind, name, cluster, owner, rules=list(rules)),
        _object(f"{_RBAC}/v1", f"{kind}Binding", name, cluster, owner, **fields),
    ]


def _object(
    api_version: str, kind: str, name: str, cluster: str, owner: JsonObject, **fields: object
) -> JsonObject:
    metadata: JsonObject = {"name": name, "ownerReferences": [owner]}
    if not kind.startswith("ClusterRole"):
        metadata["namespace"] = work_namespace(cluster)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def _rule(
    group: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()
) -> JsonObject:
    rule: JsonObject = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    return {**rule, "resourceNames": list(names)} if names else rule
