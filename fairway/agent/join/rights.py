"""What an agent may do on its hub, and what somebody may who was only invited.

All of it is plain RBAC over plain accounts, so it holds on the embedded hub and on Kubernetes
alike. What is in the cluster's own namespace is the agent's. Of what has no namespace, it reaches
what bears its cluster's name. Beyond that it reads what every agent goes by: the fleet's settings
and the rules of kinds.

Everything belongs to the Cluster object, and goes when that goes.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.api.kindrule import KINDS_GROUP
from fairway.api.meta import API_VERSION, GROUP, JsonObject
from fairway.api.names import report_name, work_namespace

AGENT = "fairway-agent"
GUEST = "fairway-join"  # the account of who was invited, and the Secret in which they ask
CHUNKS_MOST = 32  # of a cluster's report that an agent may write: 64,000 nodes
_RBAC = "rbac.authorization.k8s.io"
_READING = ("get", "list", "watch")
_WRITING = ("create", "patch", "update")


def role_name(cluster: str) -> str:
    """The role of a cluster's agent for what has no namespace."""
    return f"fairway:cluster:{cluster}"


def guest_objects(cluster: str, owner: JsonObject) -> list[JsonObject]:
    """An account that may read and answer one Secret, and do nothing else."""
    rule = _rule("", ["secrets"], ("get", "update"), names=[GUEST])
    return [
        _object("v1", "Secret", GUEST, cluster, owner, type="fairway.dev/join"),
        _object("v1", "ServiceAccount", GUEST, cluster, owner),
        *_grant(GUEST, [rule], cluster, owner),
    ]


def agent_objects(cluster: str, owner: JsonObject) -> list[JsonObject]:
    """The account of a cluster's agent, and what it may do."""
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
    """A reference by which things belong to a Cluster object."""
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
    """A role and what binds the account to it, in the cluster's namespace or everywhere."""
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
