"""Names that several parts must agree on: of works, of their namespaces, of reports, of phases.

Names are made of other names, which may be too long together or hold signs that are not allowed
where they go. Then the end gives way to a hash of the whole, which is the same everywhere.
"""

from __future__ import annotations

import re
from hashlib import sha256

# A workload that carries it is stopped before it goes.
FINALIZER = "fairway.dev/works"
# A work that its agent brought back to a hub that had lost it.
ADOPTED = "fairway.dev/adopted"
# The lease in the namespace of its cluster by which an agent says that it lives.
AGENT_LEASE = "fairway-agent"
# What an agent notes on its lease while its cluster does not answer it: it can stop nothing there.
CUT_OFF = "fairway.dev/cut-off"
# The Secret with the authority under which all replicas of a hub serve.
AUTHORITY = "fairway-authority"
# The Lease in which the replicas of a hub say where they meet.
REPLICAS = "fairway-replicas"
# Label of nodes that an elastic pool brought: its name. They can be given back.
POOL_LABEL = "fairway.dev/pool"
# Phases of a workload of which no other follows.
OVER = ("Succeeded", "Failed", "Cancelled")

_NAME_MOST = 253
_LABEL_MOST = 63
_HASH_LENGTH = 10
_NOT_IN_LABELS = re.compile(r"[^-a-z0-9]")


def work_namespace(cluster: str) -> str:
    """The namespace with the works of a cluster."""
    plain = f"fairway-cluster-{cluster}"
    label = _NOT_IN_LABELS.sub("-", plain)
    if label == plain and len(label) <= _LABEL_MOST:
        return label
    return _shorten(label, _LABEL_MOST, of=plain)


def work_name(namespace: str, name: str) -> str:
    """The work of a workload, in the namespace of each cluster that has a part of it.

    A namespace holds no dot, so two workloads never share a name.
    """
    plain = f"{namespace}.{name}"
    return plain if len(plain) <= _NAME_MOST else _shorten(plain, _NAME_MOST, of=plain)


def native_workload_name(kind: str, name: str) -> str:
    """The workload of a native object; two objects of different kinds may have one name."""
    return f"{kind.lower()}-{name}"


def revision_name(rollout: str, mark: str) -> str:
    """The object with a revision that a Rollout keeps."""
    plain = f"{rollout}-{mark}"
    return plain if len(plain) <= _NAME_MOST else _shorten(plain, _NAME_MOST, of=plain)


def namespace_and_name(workload: str) -> tuple[str, str]:
    """Which object is meant by the one word, `namespace/name`, that plans call a workload."""
    namespace, _, name = workload.partition("/")
    return namespace, name


def report_name(cluster: str, chunk: int, *, is_difference: bool = False) -> str:
    """The report on one chunk of a cluster: the whole one, or what changed since."""
    end = f"-{chunk}-difference" if is_difference else f"-{chunk}"
    most = _NAME_MOST - len(end)
    return (cluster if len(cluster) <= most else _shorten(cluster, most, of=cluster)) + end


def _shorten(text: str, most: int, *, of: str) -> str:
    digest = sha256(of.encode()).hexdigest()[:_HASH_LENGTH]
    kept = text[: most - _HASH_LENGTH - 1].rstrip("-.")
    return f"{kept}-{digest}"
