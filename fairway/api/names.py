"""Names that several parts must agree on: of works, of their namespaces, of reports, of phases.

Names are composed of other names, which together may be too long or contain characters that are not
allowed. Then a hash of the whole replaces the end; it is the same everywhere.
"""

from __future__ import annotations

import re
from hashlib import sha256

# A workload with this finalizer is stopped before it is deleted.
FINALIZER = "fairway.dev/works"
# The uid that a workload had before it was restored from a backup, by which agents know it.
RESTORED_UID = "fairway.dev/restored-uid"
# Marks a work that its agent restored to a hub that had lost it.
ADOPTED = "fairway.dev/adopted"
ENDED = "ended"  # its value if the work has ended
# Annotations of a work, and of its objects in the cluster: the decision that it was derived from,
# the proof that the hub made that decision, and for which workload.
PLACEMENT = "fairway.dev/placement"
PROOF = "fairway.dev/proof"
WORKLOAD_UID = "fairway.dev/workload-uid"  # on objects only; a work says it in its spec
# Namespaces with the works of a cluster, and with the account of its agent.
WORK_NAMESPACE_PREFIX = "fairway-cluster-"
# The Lease for the agent's heartbeat, in the namespace of its cluster.
AGENT_LEASE = "fairway-agent"
# The agent sets this on its lease while its cluster does not answer: it can stop nothing there.
CUT_OFF = "fairway.dev/cut-off"
# The Secret with the certificate authority of all replicas of a hub.
AUTHORITY = "fairway-authority"
# The Lease in which the replicas of a hub publish their addresses.
REPLICAS = "fairway-replicas"
# Label of nodes that an elastic pool provisioned: its name. They can be given back.
POOL_LABEL = "fairway.dev/pool"
# Annotation of a native object whose workload is over: how it ended. It never gets another one.
FINISHED = "fairway.dev/finished"
# Annotation of an object that stands for another one: a hash of what was taken over from it.
SOURCE_HASH = "fairway.dev/source-hash"
# Final phases of a workload.
OVER = ("Succeeded", "Failed", "Cancelled")

_NAME_MOST = 253
_LABEL_MOST = 63
_HASH_LENGTH = 10
_NOT_IN_LABELS = re.compile(r"[^-a-z0-9]")


def work_namespace(cluster: str) -> str:
    """The namespace with the works of a cluster."""
    plain = f"{WORK_NAMESPACE_PREFIX}{cluster}"
    label = _NOT_IN_LABELS.sub("-", plain)
    if label == plain and len(label) <= _LABEL_MOST:
        return label
    return _shorten(label, _LABEL_MOST, of=plain)


def work_name(namespace: str, name: str) -> str:
    """The name of a workload's work, in the namespace of each cluster that has a part of it.

    A namespace contains no dot, so two workloads never share a name.
    """
    plain = f"{namespace}.{name}"
    return plain if len(plain) <= _NAME_MOST else _shorten(plain, _NAME_MOST, of=plain)


def native_workload_name(kind: str, name: str) -> str:
    """The workload of a native object; objects of different kinds may share a name."""
    return f"{kind.lower()}-{name}"


def adopted_autoscaler_name(name: str) -> str:
    """The FleetAutoscaler of a HorizontalPodAutoscaler."""
    plain = f"hpa-{name}"
    return plain if len(plain) <= _NAME_MOST else _shorten(plain, _NAME_MOST, of=plain)


def revision_name(rollout: str, mark: str) -> str:
    """The object with a revision of a Rollout."""
    plain = f"{rollout}-{mark}"
    return plain if len(plain) <= _NAME_MOST else _shorten(plain, _NAME_MOST, of=plain)


def namespace_and_name(workload: str) -> tuple[str, str]:
    """The namespace and name in `namespace/name`, which is how plans name a workload."""
    namespace, _, name = workload.partition("/")
    return namespace, name


def report_name(cluster: str, chunk: int, *, is_difference: bool = False) -> str:
    """The report on one chunk of a cluster: the whole report, or the changes since."""
    end = f"-{chunk}-difference" if is_difference else f"-{chunk}"
    most = _NAME_MOST - len(end)
    return (cluster if len(cluster) <= most else _shorten(cluster, most, of=cluster)) + end


def _shorten(text: str, most: int, *, of: str) -> str:
    digest = sha256(of.encode()).hexdigest()[:_HASH_LENGTH]
    kept = text[: most - _HASH_LENGTH - 1].rstrip("-.")
    return f"{kept}-{digest}"
