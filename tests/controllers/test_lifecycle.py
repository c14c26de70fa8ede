"""The life of a workload: each row of the table, its troubles, and what always holds."""

from __future__ import annotations

from dataclasses import replace as with_fields
from typing import Any

import pytest
from msgspec.structs import replace

from fairway.api import codec
from fairway.api.fleet import FleetSpec, Health, Retry
from fairway.api.governance import Violation
from fairway.api.meta import Condition, ObjectMeta, Taint, Toleration, WorkloadReference
from fairway.api.names import ADOPTED, ENDED
from fairway.api.work import Work, WorkSpec
from fairway.api.workload import Workload
from fairway.controllers.governance import Breach
from fairway.controllers.lifecycle.attempt_ends import AVOIDED_SECONDS
from fairway.controllers.lifecycle.case import (
    Change,
    ClusterFacts,
    LifecycleCase,
    PodsSeen,
    Settings,
)
from fairway.controllers.lifecycle.next_status import next_status
from fairway.controllers.shared_state import TemplateRefusal
from tests.controllers.lives import (
    NOW,
    READY,
    case,
    claimed,
    moment,
    placement,
    replicas,
    running,
    seen,
    tasks,
    text,
    workload,
)

DEADLINE = {"claim": {"deadline": text(NOW)}}
FAILED = {"reason": "BackoffLimitExceeded", "exit_code": 1}
DISK = {"reason": "Evicted", "message": "The node was low on resource: ephemeral-storage."}
REFUSED = {"reason": "TemplateRefused", "message": "manifest 0: no such field"}
FULL = {"reason": "TemplateRefused", "message": "manifest 0: forbidden: exceeded quota: objects"}
PULL = {"reason": "ImagePullBackOff", "message": "not found"}


def told(change: Change) -> dict[str, Any]:
    """A status in a few words; only what says something."""
    status = change.status
    if status is None:
        return {}
    found: dict[str, Any] = {"phase": status.phase, "reason": status.reason}
    if status.claim:
        found["claim"] = {
            placement.cluster: placement.replicas
            or placement.tasks
            or sum(each.count for each in placement.pod_sets)
            for placement in status.claim.placements
        }
    if status.releasing:
        found["releasing"] = [item.cluster for item in status.releasing]
    if status.history:
        last = status.history[-1]
        found["past"] = (last.reason, last.blame)
    if status.requeue:
        found["requeue"] = (status.requeue.count, status.requeue.avoid)
    missing = status.claim.missing_copies if status.claim else None
    if status.succeeded_clusters or missing is not None:
        found["copies"] = " ".join(status.succeeded_clusters)
        found["copies"] += f", {missing} missing" if missing is not None else ""
    if status.message.startswith("in "):
        found["message"] = status.message
    return found


def deleted(workload: Workload) -> Workload:
    return replace(workload, metadata=replace(workload.metadata, deletion_timestamp=moment(NOW)))


def applied(found: LifecycleCase, change: Change) -> LifecycleCase:
    if change.status is None:
        return found
    return with_fields(found, workload=replace(found.workload, status=change.status))


def settled(found: LifecycleCase) -> LifecycleCase:
    """After the change, and proof that looking again changes nothing."""
    after = applied(found, next_status(found))
    assert next_status(after).status is None
    return after


GANG: list[tuple[str, LifecycleCase, dict[str, Any]]] = [
    (
        "a new workload waits without a write",
        case(workload()),
        {},
    ),
    (
        "a claim of which nothing is seen yet stays",
        case(claimed(placement("a"))),
        {},
    ),
    (
        "what is said of an earlier attempt says nothing",
        case(claimed(placement("a", attempt=2)), {"a": seen("Failed", 1, **FAILED)}),
        {},
    ),
    (
        "a gang with every pod ready runs",
        case(claimed(placement("a")), {"a": seen("Running", pods=READY)}),
        {"phase": "Running", "reason": "", "claim": {"a": 2}},
    ),
    (
        "a gang with one pod ready does not run yet",
        case(claimed(placement("a")), {"a": seen("Running", pods=PodsSeen(ready=1, bound=1))}),
        {},
    ),
    (
        "a split gang runs once all its parts are ready",
        case(
            claimed(placement("a"), placement("b")),
            {"a": seen("Running", pods=READY), "b": seen("Running", pods=PodsSeen(bound=2))},
        ),
        {},
    ),
    (
        "a work that succeeded before anyone saw it run is a success",
        case(claimed(placement("a")), {"a": seen("Succeeded", finished_at=NOW - 5)}),
        {"phase": "Succeeded", "reason": "Succeeded", "past": ("Succeeded", "Program")},
    ),
    (
        "a split gang of which one part succeeded goes on",
        case(
            running(placement("a"), placement("b"), pods={"wanted": 4, "ready": 4}),
            {"a": seen("Succeeded"), "b": seen("Running", pods=READY)},
            refreshes=False,
        ),
        {},
    ),
    (
        "a program that failed has failed for good",
        case(running(placement("a")), {"a": seen("Failed", **FAILED)}),
        {"phase": "Failed", "reason": "ProgramFailed", "past": ("ProgramFailed", "Program")},
    ),
    (
        "a program that failed is tried again if its workload asks",
        case(
            running(placement("a"), spec={"retry": {"limit": 2}}),
            {"a": seen("Failed", **FAILED)},
            settings=Settings(retry=Retry(limit=2)),
        ),
        {
            "phase": "Stopping",
            "reason": "ProgramFailed",
            "releasing": ["a"],
            "past": ("ProgramFailed", "Program"),
            "requeue": (1, ()),
        },
    ),
    (
        "and elsewhere if its workload asks for that",
        case(
            running(placement("a"), spec={"retry": {"limit": 2, "elsewhere": True}}),
            {"a": seen("Failed", **FAILED)},
            settings=Settings(retry=Retry(limit=2, elsewhere=True)),
        ),
        {
            "phase": "Stopping",
            "reason": "ProgramFailed",
            "releasing": ["a"],
            "past": ("ProgramFailed", "Program"),
            "requeue": (1, ("a",)),
        },
    ),
    (
        "past its limit of retries it has failed for good",
        case(
            running(placement("a"), requeue={"count": 2}),
            {"a": seen("Failed", exit_code=137)},
            settings=Settings(retry=Retry(limit=2)),
        ),
        {
            "phase": "Failed",
            "reason": "Killed",
            "past": ("Killed", "Unknown"),
            "requeue": (2, ()),
        },
    ),
    (
        "a failure by fault of the node is tried again and not counted",
        case(running(placement("a")), {"a": seen("Failed", **DISK)}),
        {
            "phase": "Stopping",
            "reason": "NodeDiskPressure",
            "releasing": ["a"],
            "past": ("NodeDiskPressure", "Place"),
            "requeue": (0, ()),
        },
    ),
    (
        "an image that cannot be pulled is tried in another cluster",
        case(claimed(placement("a")), {"a": seen("Failed", **PULL)}),
        {
            "phase": "Stopping",
            "reason": "ImageError",
            "releasing": ["a"],
            "past": ("ImageError", "Place"),
            "requeue": (1, ("a",)),
        },
    ),
    (
        "an image that no cluster can pull fails for good",
        case(
            claimed(
                placement("b"),
                history=[
                    {"attempt": 0, "clusters": ["a"], "reason": "ImageError", "blame": "Place"}
                ],
            ),
            {"b": seen("Failed", **PULL)},
        ),
        {"phase": "Failed", "reason": "ImageError", "past": ("ImageError", "Program")},
    ),
    (
        "one failed part stops the whole gang, to be tried again",
        case(
            running(placement("a"), placement("b")),
            {"a": seen("Failed", exit_code=137), "b": seen("Running", pods=READY)},
        ),
        {
            "phase": "Stopping",
            "reason": "Killed",
            "releasing": ["a", "b"],
            "past": ("Killed", "Unknown"),
            "requeue": (1, ()),
        },
    ),
    (
        "one part that failed for good stops the others, and its own work stays for its logs",
        case(
            running(placement("a"), placement("b")),
            {"a": seen("Failed", **FAILED), "b": seen("Running", pods=READY)},
        ),
        {
            "phase": "Stopping",
            "reason": "ProgramFailed",
            "releasing": ["b"],
            "past": ("ProgramFailed", "Program"),
        },
    ),
    (
        "what somebody else removed from the cluster is tried again at once",
        case(running(placement("a")), {"a": seen("Gone")}),
        {
            "phase": "Waiting",
            "reason": "BackOff",
            "past": ("Vanished", "Place"),
            "requeue": (1, ()),
        },
    ),
    (
        "a template that its cluster refuses goes back to its queue at once, and avoids the place",
        case(claimed(placement("a")), {"a": seen("Pending", **REFUSED)}),
        {
            "phase": "Stopping",
            "reason": "TemplateRefused",
            "releasing": ["a"],
            "past": ("TemplateRefused", "Place"),
            "requeue": (1, ("a",)),
        },
    ),
    (
        "a quota that is full in the place is no failure, however often that happens",
        case(
            claimed(
                placement("a"),
                history=[
                    {"attempt": 1, "clusters": ["b"], "reason": "QuotaRefused", "blame": "Place"}
                ],
                requeue={"count": 3},
            ),
            {"a": seen("Pending", **FULL)},
        ),
        {
            "phase": "Stopping",
            "reason": "QuotaRefused",
            "releasing": ["a"],
            "past": ("QuotaRefused", "Place"),
            "requeue": (3, ("a",)),
        },
    ),
    (
        "a template that the hub can send to no cluster has failed, and nothing is waited for",
        case(
            claimed(placement("a")),
            refusal=TemplateRefusal(attempt=1, message="no", clusters=frozenset()),
        ),
        {
            "phase": "Failed",
            "reason": "ManifestInvalid",
            "past": ("ManifestInvalid", "Program"),
        },
    ),
    (
        "a template that the hub may not send to its cluster goes back to its queue",
        case(
            claimed(placement("a")),
            refusal=TemplateRefusal(attempt=1, message="no", clusters=frozenset({"a"})),
        ),
        {
            "phase": "Waiting",
            "reason": "TemplateRefused",
            "past": ("TemplateRefused", "Place"),
            "requeue": (1, ("a",)),
        },
    ),
    (
        "what was refused of an earlier attempt says nothing",
        case(
            claimed(placement("a", attempt=2)),
            refusal=TemplateRefusal(attempt=0, message="no", clusters=frozenset()),
        ),
        {},
    ),
    (
        "a gang that runs keeps running when its new template is refused",
        case(
            running(placement("a"), pods={"wanted": 2, "ready": 2}),
            {"a": seen("Running", pods=READY, ready_at=NOW - 5, **REFUSED)},
            refreshes=False,
        ),
        {},
    ),
    (
        "a gang that is not ready in time goes back to its queue and avoids the place",
        case(claimed(placement("a"), **DEADLINE), {"a": seen("Running", pods=PodsSeen(bound=2))}),
        {
            "phase": "Stopping",
            "reason": "NotReadyInTime",
            "releasing": ["a"],
            "past": ("NotReadyInTime", "Place"),
            "requeue": (1, ("a",)),
        },
    ),
    (
        "a gang that is late stays while the hub waits for what its cluster reports",
        case(claimed(placement("a"), **DEADLINE), awaits_clusters=True),
        {},
    ),
    (
        "a gang that succeeded has done so while the hub waits for other clusters",
        case(
            claimed(placement("a"), **DEADLINE),
            {"a": seen("Succeeded", pods=PodsSeen(succeeded=2))},
            awaits_clusters=True,
        ),
        {"phase": "Succeeded", "reason": "Succeeded", "past": ("Succeeded", "Program")},
    ),
    (
        "of a split gang that is late only the clusters that are not ready are avoided",
        case(
            claimed(placement("a"), placement("b"), **DEADLINE),
            {"a": seen("Running", pods=READY), "b": seen("Running", pods=PodsSeen(bound=2))},
        ),
        {
            "phase": "Stopping",
            "reason": "NotReadyInTime",
            "releasing": ["a", "b"],
            "past": ("NotReadyInTime", "Place"),
            "requeue": (1, ("b",)),
        },
    ),
    (
        "a gang whose pods found no node for too long is taken back whole",
        case(
            claimed(placement("a")),
            {"a": seen("Running", pods=PodsSeen(pending=1, ready=1, pending_since=NOW - 300))},
        ),
        {
            "phase": "Stopping",
            "reason": "PendingTooLong",
            "releasing": ["a"],
            "past": ("PendingTooLong", "Place"),
            "requeue": (1, ("a",)),
        },
    ),
    (
        "a gang whose image cannot be pulled is taken back, and tried in another cluster",
        case(
            claimed(placement("a")),
            {"a": seen("Pending", pods=PodsSeen(bound=2), **PULL)},
            now=NOW + 200,
        ),
        {
            "phase": "Stopping",
            "reason": "ImageError",
            "releasing": ["a"],
            "past": ("ImageError", "Place"),
            "requeue": (1, ("a",)),
        },
    ),
    (
        "an image may take a while",
        case(
            claimed(placement("a")),
            {"a": seen("Pending", pods=PodsSeen(bound=2), **PULL)},
            now=NOW + 199,
        ),
        {},
    ),
    (
        "pods that nodes are on their way for may wait longer",
        case(
            claimed(
                placement("a"),
                claim={"waitsFor": [{"type": "Provision", "cluster": "a", "pool": "p"}]},
            ),
            {"a": seen("Pending", pods=PodsSeen(pending=2, pending_since=NOW - 900))},
        ),
        {},
    ),
    (
        "what ran for longer than its limit over all attempts is stopped for good",
        case(
            running(placement("a"), ranSeconds=40),
            {"a": seen("Running", pods=READY)},
            settings=Settings(run_limit=100),
        ),
        {
            "phase": "Stopping",
            "reason": "RunLimitExceeded",
            "releasing": ["a"],
            "past": ("RunLimitExceeded", "Program"),
        },
    ),
]

ASKED: list[tuple[str, LifecycleCase, dict[str, Any]]] = [
    (
        "a waiting workload that is cancelled is over at once",
        case(workload(cancelled=True)),
        {"phase": "Cancelled", "reason": "Cancelled"},
    ),
    (
        "a running workload that is cancelled stops first",
        case(running(placement("a"), spec={"cancelled": True})),
        {
            "phase": "Stopping",
            "reason": "Cancelled",
            "releasing": ["a"],
            "past": ("Cancelled", "Decision"),
        },
    ),
    (
        "what is done is done though somebody cancels it",
        case(running(placement("a"), spec={"cancelled": True}), {"a": seen("Succeeded")}),
        {"phase": "Succeeded", "reason": "Succeeded", "past": ("Succeeded", "Program")},
    ),
    (
        "a waiting workload is held",
        case(workload(hold="Hold")),
        {"phase": "Held", "reason": "Held"},
    ),
    (
        "a held workload waits again when it is let go",
        case(workload({"phase": "Held", "reason": "Held"})),
        {"phase": "Waiting", "reason": ""},
    ),
    (
        "a hold leaves what runs alone",
        case(
            running(placement("a"), spec={"hold": "Hold"}, pods={"wanted": 2, "ready": 2}),
            {"a": seen("Running", pods=READY)},
        ),
        {},
    ),
    (
        "a hold with drain stops what runs",
        case(running(placement("a"), spec={"hold": "HoldAndDrain"})),
        {
            "phase": "Stopping",
            "reason": "Drained",
            "releasing": ["a"],
            "past": ("Drained", "Decision"),
        },
    ),
    (
        "a queue that is drained stops what runs in it",
        case(running(placement("a")), settings=Settings(queue_hold="HoldAndDrain")),
        {
            "phase": "Stopping",
            "reason": "QueueDrained",
            "releasing": ["a"],
            "past": ("QueueDrained", "Decision"),
        },
    ),
    (
        "a deleted workload that runs stops first",
        case(deleted(running(placement("a")))),
        {
            "phase": "Stopping",
            "reason": "Deleted",
            "releasing": ["a"],
            "past": ("Deleted", "Decision"),
        },
    ),
    (
        "a workload that changed its queue while it waits says so",
        case(workload({"phase": "Waiting", "queue": "old"}, priority=7)),
        {"phase": "Waiting", "reason": ""},
    ),
]

PLACES = {name: ClusterFacts() for name in ("a", "b", "c")}
NO_EXECUTE = Taint(key="maintenance", effect="NoExecute", time_added=moment(NOW - 50))
BEARS = Toleration(key="maintenance", operator="Exists", toleration_seconds=60)
MOVED = {"phase": "Stopping", "releasing": ["a"]}


def lost(
    silent: float, phase: str = "Lost", *, is_cut_off: bool = False
) -> dict[str, ClusterFacts]:
    return {**PLACES, "a": ClusterFacts(phase=phase, silent_seconds=silent, is_cut_off=is_cut_off)}


def refused(reason: str, generation: int = 1, attempt: int = 1) -> dict[str, Work]:
    """The work as its agent refused it."""
    (work,) = told_to_stop(None).values()
    condition = Condition(
        type="Accepted",
        status="False",
        reason=reason,
        message="fleet policy p does not allow a: rule clusters",
        observed_generation=generation,
        last_transition_time=moment(NOW),
    )
    return {
        "a": replace(
            work,
            metadata=replace(work.metadata, generation=1),
            spec=replace(work.spec, attempt=attempt),
            status=replace(work.status, conditions=(condition,)),
        )
    }


def broken(enforcement: str = "Enforce", grace: int | None = None, **more: Any) -> dict[str, Any]:
    """A rule that a workload breaks, and what was sent of it."""
    rule = more.pop("rule", "registries")
    violation = Violation(policy="p", rule=rule, what="x")
    breach = Breach(violation=violation, enforcement=enforcement, grace_seconds=grace, **more)
    return {"breaches": (breach,), "sent": told_to_stop(None)}


def stopping(seconds: float) -> dict[str, Any]:
    """Stopped for a rule of a policy for so long."""
    since = text(NOW - seconds)
    kind = {"type": "PolicyStop", "status": "True", "message": "", "lastTransitionTime": since}
    return {"conditions": [kind]}


def told_to_stop(silence: int | None) -> dict[str, Work]:
    plain = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Work",
        "metadata": {"name": "team.train", "namespace": "fairway-cluster-a"},
        "spec": {
            "cluster": "a",
            "workload": {"namespace": "team", "name": "train", "uid": "u-1"},
            "attempt": 1,
            "term": 5,
            "stop": {"graceSeconds": 20},
            **({"stopWhenSilentSeconds": silence} if silence is not None else {}),
        },
    }
    return {"a": codec.decode(plain, Work)}


HEALTH = FleetSpec(health=Health(lost_seconds=300, skew_seconds=30))
MOVES = Settings(on_cluster_lost="StopAndMove", cluster_lost_seconds=600, fleet=HEALTH)
TWICE = Settings(on_cluster_lost="AllowDuplicate", fleet=HEALTH)
SILENT = 900 + 30 + 20  # what the agent bears, what clocks differ by, the time pods get to end

PLACES_TABLE: list[tuple[str, LifecycleCase, dict[str, Any]]] = [
    (
        "a workload waits for its lost cluster",
        case(running(placement("a")), places=lost(9_999_999)),
        {},
    ),
    (
        "where it may run twice it moves as soon as its cluster is lost, and is charged no more",
        case(running(placement("a")), places=lost(300), settings=TWICE),
        {
            "phase": "Waiting",
            "reason": "",
            "past": ("ClusterLost", "Place"),
            "requeue": (0, ("a",)),
        },
    ),
    (
        "it does not move from a cluster that is merely unready",
        case(running(placement("a")), places=lost(100, "Unready"), settings=TWICE),
        {},
    ),
    (
        "it is not replaced before the agent has surely stopped it",
        case(
            running(placement("a")),
            places=lost(SILENT - 1),
            settings=MOVES,
            sent=told_to_stop(900),
        ),
        {},
    ),
    (
        "it is replaced once the agent has surely stopped it",
        case(running(placement("a")), places=lost(SILENT), settings=MOVES, sent=told_to_stop(900)),
        {
            "phase": "Waiting",
            "reason": "",
            "past": ("ClusterLost", "Place"),
            "requeue": (0, ("a",)),
        },
    ),
    (
        "an agent that says that its cluster does not answer stops nothing, and is waited for",
        case(
            running(placement("a")),
            places=lost(99_999, is_cut_off=True),
            settings=MOVES,
            sent=told_to_stop(900),
        ),
        {},
    ),
    (
        "where it may run twice it moves from such a cluster too",
        case(running(placement("a")), places=lost(300, is_cut_off=True), settings=TWICE),
        {
            "phase": "Waiting",
            "reason": "",
            "past": ("ClusterLost", "Place"),
            "requeue": (0, ("a",)),
        },
    ),
    (
        "an agent that was never told to stop by itself is waited for",
        case(running(placement("a")), places=lost(99_999), settings=MOVES, sent=told_to_stop(None)),
        {},
    ),
    (
        "an agent that was told to bear more gets the time",
        case(running(placement("a")), places=lost(SILENT), settings=MOVES, sent=told_to_stop(1200)),
        {},
    ),
    (
        "a cluster that is no part of the fleet any more has nothing to confirm",
        case(running(placement("gone"))),
        {"phase": "Waiting", "reason": "", "past": ("ClusterRemoved", "Place")},
    ),
    (
        "a cluster that is drained gives its workloads back",
        case(running(placement("a")), places={**PLACES, "a": ClusterFacts(hold="HoldAndDrain")}),
        {**MOVED, "reason": "ClusterDrained", "past": ("ClusterDrained", "Decision")},
    ),
    (
        "a cluster that is held keeps what it has",
        case(
            running(placement("a"), pods={"wanted": 2}),
            places={**PLACES, "a": ClusterFacts(hold="Hold")},
        ),
        {},
    ),
    (
        "nothing moves while the breaker of moves is open",
        case(
            running(placement("a"), pods={"wanted": 2}),
            places={**PLACES, "a": ClusterFacts(hold="HoldAndDrain")},
            may_move=False,
        ),
        {},
    ),
    (
        "nothing moves from a cluster that is only observed",
        case(
            running(placement("a"), pods={"wanted": 2}),
            places={**PLACES, "a": ClusterFacts(hold="HoldAndDrain", mode="Observe")},
        ),
        {},
    ),
    (
        "a taint that its policy does not bear drives it away",
        case(running(placement("a")), places={**PLACES, "a": ClusterFacts(taints=(NO_EXECUTE,))}),
        {**MOVED, "reason": "ClusterTainted", "past": ("ClusterTainted", "Decision")},
    ),
    (
        "a taint is borne for as long as its policy says",
        case(
            running(placement("a"), pods={"wanted": 2}),
            places={**PLACES, "a": ClusterFacts(taints=(NO_EXECUTE,))},
            settings=Settings(tolerations=(BEARS,)),
        ),
        {},
    ),
    (
        "a taint drives it away once it was borne for long enough",
        case(
            running(placement("a")),
            places={**PLACES, "a": ClusterFacts(taints=(NO_EXECUTE,))},
            settings=Settings(tolerations=(BEARS,)),
            now=NOW + 10,
        ),
        {**MOVED, "reason": "ClusterTainted", "past": ("ClusterTainted", "Decision")},
    ),
]

SERVICE = {"mode": "Divided", "replicas": 5}
SOME = {"wanted": 5, "ready": 3}
LEFT = {
    "attempt": 1, "clusters": ["c"], "endedAt": text(NOW - 9000), "reason": "NotReadyInTime",
    "blame": "Place",
}  # fmt: skip


def of_revision(cluster: str, mark: str) -> Work:
    work = told_to_stop(None)["a"]
    marked = replace(work.metadata, annotations={"fairway.dev/revision": mark})
    return replace(work, metadata=marked, spec=replace(work.spec, cluster=cluster))


PODS5 = {"wanted": 5, "ready": 5}
SERVICES: list[tuple[str, LifecycleCase, dict[str, Any]]] = [
    (
        "a service runs with its first replica",
        case(
            claimed(replicas("a", 3), replicas("b", 2), spec=SERVICE),
            {"a": seen("Running", pods=PodsSeen(ready=1, bound=2))},
        ),
        {"phase": "Running", "reason": "", "claim": {"a": 3, "b": 2}},
    ),
    (
        "replicas that found no node are taken back, and the others stay",
        case(
            running(replicas("a", 3), replicas("b", 2), spec=SERVICE),
            {
                "a": seen("Running", pods=PodsSeen(ready=3)),
                "b": seen("Running", pods=PodsSeen(ready=1, pending=1, pending_since=NOW - 300)),
            },
        ),
        {
            "phase": "Running",
            "reason": "PendingTooLong",
            "claim": {"a": 3, "b": 1},
            "requeue": (0, ("b",)),
        },
    ),
    (
        "with one place gone and the other done it is done at once",
        case(
            running(replicas("a", 3), replicas("b", 2), spec=SERVICE),
            {"b": seen("Succeeded")},
            places={"b": ClusterFacts()},
        ),
        {"phase": "Succeeded", "reason": "Succeeded", "past": ("Succeeded", "Program")},
    ),
    (
        "a cluster where all replicas are stuck is left",
        case(
            running(replicas("a", 3), replicas("b", 2), spec=SERVICE),
            {
                "a": seen("Running", pods=PodsSeen(ready=3)),
                "b": seen("Pending", pods=PodsSeen(pending=2, pending_since=NOW - 300)),
            },
        ),
        {
            "phase": "Running",
            "reason": "PendingTooLong",
            "claim": {"a": 3},
            "releasing": ["b"],
            "past": ("PendingTooLong", "Place"),
            "requeue": (0, ("b",)),
        },
    ),
    (
        "replicas that have a node and are not ready in time are placed elsewhere",
        case(
            running(replicas("a", 3), replicas("b", 2), spec=SERVICE),
            {
                "a": seen("Running", pods=PodsSeen(ready=3)),
                "b": seen("Running", pods=PodsSeen(ready=1, bound=1, unready_since=NOW - 1800)),
            },
        ),
        {
            "phase": "Running",
            "reason": "NotReadyInTime",
            "claim": {"a": 3, "b": 1},
            "releasing": ["b"],
            "past": ("NotReadyInTime", "Place"),
            "requeue": (0, ("b",)),
        },
    ),
    (
        "a cluster where no replica is ready in time is left",
        case(
            running(replicas("a", 3), replicas("b", 2), spec=SERVICE),
            {
                "a": seen("Running", pods=PodsSeen(ready=3)),
                "b": seen("Running", pods=PodsSeen(bound=2, unready_since=NOW - 1800)),
            },
        ),
        {
            "phase": "Running",
            "reason": "NotReadyInTime",
            "claim": {"a": 3},
            "releasing": ["b"],
            "past": ("NotReadyInTime", "Place"),
            "requeue": (0, ("b",)),
        },
    ),
    (
        "replicas that are not ready have their time",
        case(
            running(replicas("a", 3), replicas("b", 2), spec=SERVICE, pods=SOME),
            {
                "a": seen("Running", pods=PodsSeen(ready=3)),
                "b": seen("Running", pods=PodsSeen(bound=2, unready_since=NOW - 1799)),
            },
        ),
        {},
    ),
    (
        "replicas that are not ready in two clusters stay: no place is to blame",
        case(
            running(replicas("a", 3), replicas("b", 2), spec=SERVICE, pods=SOME),
            {
                "a": seen("Running", pods=PodsSeen(ready=3, bound=1, unready_since=NOW - 9000)),
                "b": seen("Running", pods=PodsSeen(bound=2, unready_since=NOW - 9000)),
            },
            refreshes=False,
        ),
        {},
    ),
    (
        "a service that is ready nowhere tries a second cluster",
        case(
            running(replicas("b", 5), spec=SERVICE),
            {"b": seen("Running", pods=PodsSeen(bound=5, unready_since=NOW - 1800))},
        ),
        {
            "phase": "Stopping",
            "reason": "NotReadyInTime",
            "releasing": ["b"],
            "past": ("NotReadyInTime", "Place"),
            "requeue": (0, ("b",)),
        },
    ),
    (
        "and stays in the second",
        case(
            running(replicas("b", 5), spec=SERVICE, history=[LEFT], pods={"wanted": 5}),
            {"b": seen("Running", pods=PodsSeen(bound=5, unready_since=NOW - 86000))},
            refreshes=False,
        ),
        {},
    ),
    (
        "each move of a day doubles the time of the next",
        case(
            running(
                replicas("a", 3), replicas("b", 2), spec=SERVICE, history=[LEFT, LEFT], pods=SOME
            ),
            {
                "a": seen("Running", pods=PodsSeen(ready=3)),
                "b": seen("Running", pods=PodsSeen(bound=2, unready_since=NOW - 4 * 1800 + 1)),
            },
        ),
        {},
    ),
    (
        "another revision that is ready elsewhere says nothing of this one",
        case(
            running(replicas("a", 3), replicas("b", 2), spec=SERVICE, history=[LEFT], pods=SOME),
            {
                "a": seen("Running", pods=PodsSeen(ready=3)),
                "b": seen("Running", pods=PodsSeen(bound=2, unready_since=NOW - 9000)),
            },
            sent={"a": of_revision("a", "1"), "b": of_revision("b", "2")},
        ),
        {},
    ),
    (
        "a drained cluster takes only its own replicas along",
        case(
            running(replicas("a", 3), replicas("b", 2), spec=SERVICE),
            places={**PLACES, "b": ClusterFacts(hold="HoldAndDrain")},
        ),
        {
            "phase": "Running",
            "reason": "ClusterDrained",
            "claim": {"a": 3},
            "releasing": ["b"],
            "past": ("ClusterDrained", "Decision"),
        },
    ),
    (
        "replicas that left are charged until no more pods are there than stay",
        case(
            running(
                replicas("a", 3),
                spec=SERVICE,
                releasing=[replicas("a", 2)],
                pods={"wanted": 3, "ready": 3},
            ),
            {"a": seen("Running", pods=PodsSeen(ready=3, terminating=1))},
        ),
        {},
    ),
    (
        "replicas that left are gone when no more pods are there than stay",
        case(
            running(replicas("a", 3), spec=SERVICE, releasing=[replicas("a", 2)]),
            {"a": seen("Running", pods=PodsSeen(ready=3))},
        ),
        {"phase": "Running", "reason": "", "claim": {"a": 3}},
    ),
]

SWEEP = {"mode": "Independent", "tasks": {"count": 6}}
SWEEP1 = {"mode": "Independent", "tasks": {"count": 6, "failedMax": 1}}
SWEEPS: list[tuple[str, LifecycleCase, dict[str, Any]]] = [
    (
        "a sweep runs with its first task",
        case(claimed(tasks("a", "0-2", 3), spec=SWEEP), {"a": seen("Running")}),
        {"phase": "Running", "reason": "", "claim": {"a": "0-2"}},
    ),
    (
        "tasks that are over leave the claim",
        case(
            running(tasks("a", "0-2", 3), tasks("b", "3-5", 3), spec=SWEEP),
            {"a": seen("Running", succeeded_tasks="0,2"), "b": seen("Running")},
        ),
        {"phase": "Running", "reason": "", "claim": {"a": "1", "b": "3-5"}},
    ),
    (
        "a cluster speaks for the tasks that it was given, and for no others",
        case(
            running(tasks("a", "0-2", 3), tasks("b", "3-5", 3), spec=SWEEP1),
            {"a": seen("Running"), "b": seen("Running", succeeded_tasks="0-4", failed_tasks="2")},
        ),
        {"phase": "Running", "reason": "", "claim": {"a": "0-2", "b": "5"}},
    ),
    (
        "a sweep with all that was placed done waits for the rest",
        case(
            running(tasks("a", "0-2", 3), spec=SWEEP),
            {"a": seen("Succeeded", succeeded_tasks="0-2")},
        ),
        {"phase": "Waiting", "reason": "", "past": ("TasksDone", "Decision")},
    ),
    (
        "a sweep is done with its last task",
        case(
            running(tasks("a", "3-5", 3), spec=SWEEP, succeededTasks="0-2"),
            {"a": seen("Succeeded")},
        ),
        {"phase": "Succeeded", "reason": "Succeeded", "past": ("Succeeded", "Program")},
    ),
    (
        "a sweep of which no task may fail fails with the first, and stops the others",
        case(
            running(tasks("a", "0-2", 3), tasks("b", "3-5", 3), spec=SWEEP),
            {"a": seen("Running", failed_tasks="1"), "b": seen("Running")},
        ),
        {
            "phase": "Stopping",
            "reason": "TasksFailed",
            "releasing": ["a", "b"],
            "past": ("TasksFailed", "Program"),
        },
    ),
    (
        "a sweep of which one task may fail goes on",
        case(
            running(tasks("a", "0-2", 3), tasks("b", "3-5", 3), spec=SWEEP1),
            {"a": seen("Running", failed_tasks="1"), "b": seen("Running")},
        ),
        {"phase": "Running", "reason": "", "claim": {"a": "0,2", "b": "3-5"}},
    ),
    (
        "a deleted sweep waits for a cluster that is done with some tasks and may get the others",
        case(
            deleted(running(tasks("a", "0-3", 4), tasks("b", "4-5", 2), spec=SWEEP)),
            {
                "a": seen("Succeeded", succeeded_tasks="0-1"),
                "b": seen("Succeeded", succeeded_tasks="4-5"),
            },
        ),
        {
            "phase": "Stopping",
            "reason": "Deleted",
            "releasing": ["a"],
            "past": ("Deleted", "Decision"),
        },
    ),
    (
        "a part that fails by fault of the place gives its unfinished tasks back",
        case(
            running(tasks("a", "0-2", 3), tasks("b", "3-5", 3), spec=SWEEP),
            {"a": seen("Failed", succeeded_tasks="0", **DISK), "b": seen("Running")},
        ),
        {
            "phase": "Running",
            "reason": "NodeDiskPressure",
            "claim": {"b": "3-5"},
            "releasing": ["a"],
            "past": ("NodeDiskPressure", "Place"),
            "requeue": (0, ()),
        },
    ),
]

EACH = {"mode": "Divided", "replicas": 1}
AGAIN = Settings(retry=Retry(limit=2))


def copies(*clusters: str, missing: int | None = 0, **more: Any) -> Workload:
    """A Job with a copy in each of these clusters; others are missing."""
    held = {} if missing is None else {"missingCopies": missing}
    spec = {**EACH, **more.pop("spec", {})}
    return running(*(replicas(name, 1) for name in clusters), spec=spec, claim=held, **more)


COPIES: list[tuple[str, LifecycleCase, dict[str, Any]]] = [
    (
        "copies that end at the same time are a success",
        case(copies("a", "b"), {"a": seen("Succeeded"), "b": seen("Succeeded")}, is_copied=True),
        {
            "phase": "Succeeded",
            "reason": "Succeeded",
            "past": ("Succeeded", "Program"),
            "copies": "a b",
        },
    ),
    (
        "a copy that has succeeded leaves the claim and is remembered",
        case(
            copies("a", "b"),
            {"a": seen("Succeeded"), "b": seen("Running", pods=PodsSeen(ready=1))},
            is_copied=True,
        ),
        {"phase": "Running", "reason": "", "claim": {"b": 1}, "copies": "a, 0 missing"},
    ),
    (
        "the last of them is the end",
        case(copies("b", succeededClusters=["a"]), {"b": seen("Succeeded")}, is_copied=True),
        {
            "phase": "Succeeded",
            "reason": "Succeeded",
            "past": ("Succeeded", "Program"),
            "copies": "a b",
        },
    ),
    (
        "a copy that never had room is waited for in the queue",
        case(copies("a", missing=1), {"a": seen("Succeeded")}, is_copied=True),
        {"phase": "Waiting", "reason": "", "past": ("CopiesDone", "Decision"), "copies": "a"},
    ),
    (
        "and so it is while it is not known how many are missing",
        case(copies("a", missing=None), {"a": seen("Succeeded")}, is_copied=True, refreshes=False),
        {"phase": "Running", "reason": "", "claim": {}, "copies": "a"},
    ),
    (
        "once nothing is missing any more it has succeeded",
        case(
            claimed(spec=EACH, claim={"missingCopies": 0}, succeededClusters=["a"]), is_copied=True
        ),
        {
            "phase": "Succeeded",
            "reason": "Succeeded",
            "past": ("Succeeded", "Program"),
            "copies": "a",
        },
    ),
    (
        "a copy that failed is missing until it is retried",
        case(
            copies("a", "b", spec={"retry": {"limit": 2}}),
            {"a": seen("Running", pods=PodsSeen(ready=1)), "b": seen("Failed", **FAILED)},
            settings=AGAIN,
            is_copied=True,
        ),
        {
            "phase": "Running",
            "reason": "ProgramFailed",
            "claim": {"a": 1},
            "releasing": ["b"],
            "past": ("ProgramFailed", "Program"),
            "requeue": (1, ()),
            "copies": ", 1 missing",
        },
    ),
    (
        "also if the others succeed in that moment",
        case(
            copies("a", "b", spec={"retry": {"limit": 2}}),
            {"a": seen("Succeeded"), "b": seen("Failed", **FAILED)},
            settings=AGAIN,
            is_copied=True,
        ),
        {
            "phase": "Stopping",
            "reason": "ProgramFailed",
            "releasing": ["b"],
            "past": ("ProgramFailed", "Program"),
            "requeue": (1, ()),
            "copies": "a",
        },
    ),
    (
        "without a retry left all have failed, and the copy is named",
        case(
            copies("a", "b", succeededClusters=["c"]),
            {
                "a": seen("Running", pods=PodsSeen(ready=1)),
                "b": seen("Failed", message="no data", **FAILED),
            },
            is_copied=True,
        ),
        {
            "phase": "Stopping",
            "reason": "ProgramFailed",
            "message": "in b: no data",
            "releasing": ["a"],
            "past": ("ProgramFailed", "Program"),
            "copies": "c",
        },
    ),
    (
        "a copy that ends when all are drained is remembered",
        case(
            copies("a", "b", spec={"hold": "HoldAndDrain"}),
            {"a": seen("Succeeded"), "b": seen("Running")},
            is_copied=True,
        ),
        {
            "phase": "Stopping",
            "reason": "Drained",
            "releasing": ["b"],
            "past": ("Drained", "Decision"),
            "copies": "a",
        },
    ),
    (
        "so is one that ended just before it was preempted",
        case(
            workload({"phase": "Stopping", "releasing": [replicas("a", 1)]}, **EACH),
            {"a": seen("Succeeded")},
            is_copied=True,
        ),
        {"phase": "Stopping", "reason": "", "releasing": ["a"], "copies": "a"},
    ),
    (
        "a copy that was lost with its cluster is missing",
        case(
            copies("a", "b"),
            {"a": seen("Running", pods=PodsSeen(ready=1)), "b": seen("Running")},
            places={"a": ClusterFacts(), "b": ClusterFacts(phase="Lost")},
            settings=Settings(on_cluster_lost="AllowDuplicate"),
            is_copied=True,
        ),
        {
            "phase": "Running",
            "reason": "ClusterLost",
            "claim": {"a": 1},
            "past": ("ClusterLost", "Place"),
            "requeue": (0, ("b",)),
            "copies": ", 1 missing",
        },
    ),
    (
        "a service whose works are over is as it was",
        case(copies("a", missing=None), {"a": seen("Succeeded")}),
        {"phase": "Succeeded", "reason": "Succeeded", "past": ("Succeeded", "Program")},
    ),
]


def brought_back(cluster: str, attempt: int) -> Work:
    """A work that has ended, as an agent writes it back to a restored hub."""
    return Work(
        metadata=ObjectMeta(name="team.train", labels={ADOPTED: ENDED}),
        spec=WorkSpec(
            cluster=cluster,
            workload=WorkloadReference(namespace="team", name="train", uid="u-1"),
            attempt=attempt,
            term=1,
        ),
    )


def test_a_restored_hub_learns_from_agents_which_copies_are_over() -> None:
    found = case(
        workload({"phase": "Waiting"}, **EACH),
        {"a": seen("Succeeded")},
        sent={"a": brought_back("a", 1)},
        is_copied=True,
    )
    status = next_status(found).status
    assert status is not None
    assert (status.phase, status.succeeded_clusters) == ("Waiting", ("a",))
    settled(found)


def test_a_restored_hub_takes_over_a_later_attempt_before_an_earlier_one_is_gone() -> None:
    found = case(workload(STOPPING), sent={"b": brought_back("b", 2)})
    status = next_status(found).status
    assert status is not None
    assert status.claim is not None
    assert (status.phase, status.reason) == ("Claimed", "")
    assert (status.claim.attempt, status.claim.placements[0].cluster) == (2, "b")
    assert [left.cluster for left in status.releasing] == ["a"]


STOPPING = {"phase": "Stopping", "reason": "PreemptedToReclaim", "releasing": [placement("a")]}
STOPPED: list[tuple[str, LifecycleCase, dict[str, Any]]] = [
    ("what leaves is charged until it is gone", case(workload(STOPPING)), {}),
    (
        "what is stopping is not gone",
        case(workload(STOPPING), {"a": seen("Stopping")}),
        {},
    ),
    (
        "that an earlier attempt is gone says nothing",
        case(
            workload({**STOPPING, "releasing": [placement("a", attempt=3)]}),
            {"a": seen("Gone", 2)},
        ),
        {},
    ),
    (
        "with the last of it gone it waits again",
        case(workload(STOPPING), {"a": seen("Gone")}),
        {"phase": "Waiting", "reason": ""},
    ),
    (
        "what the objects of a place refused is still said",
        case(workload({**STOPPING, "reason": "QuotaRefused"}), {"a": seen("Gone")}),
        {"phase": "Waiting", "reason": "TemplateRefused"},
    ),
    (
        "of two places one gone leaves the other",
        case(
            workload({**STOPPING, "releasing": [placement("a"), placement("b")]}),
            {"a": seen("Gone")},
        ),
        {"phase": "Stopping", "reason": "PreemptedToReclaim", "releasing": ["b"]},
    ),
    (
        "held while it stops it is held after",
        case(workload(STOPPING, hold="Hold"), {"a": seen("Gone")}),
        {"phase": "Held", "reason": "Held"},
    ),
    (
        "cancelled while it stops it is cancelled after",
        case(workload(STOPPING, cancelled=True), {"a": seen("Gone")}),
        {"phase": "Cancelled", "reason": "Cancelled"},
    ),
    (
        "what failed for good has failed when it is gone",
        case(
            workload({**STOPPING, "reason": "RunLimitExceeded", "finishedAt": text(NOW - 5)}),
            {"a": seen("Gone")},
        ),
        {"phase": "Failed", "reason": "RunLimitExceeded"},
    ),
]

SENT_AWAY = {
    "phase": "Stopping",
    "reason": "PolicyViolated",
    "releasing": ["a"],
    "past": ("PolicyViolated", "Decision"),
}
POLICIES: list[tuple[str, LifecycleCase, dict[str, Any]]] = [
    (
        "a work that its agent refuses because of a policy is tried elsewhere",
        case(claimed(placement("a")), sent=refused("PolicyViolated")),
        {**SENT_AWAY, "requeue": (0, ("a",))},
    ),
    (
        "not one of another generation",
        case(claimed(placement("a")), sent=refused("PolicyViolated", generation=2)),
        {},
    ),
    (
        "not one of another attempt",
        case(claimed(placement("a")), sent=refused("PolicyViolated", attempt=0)),
        {},
    ),
    (
        "not one that runs, and whose change alone is refused",
        case(
            running(placement("a"), pods={"wanted": 2, "ready": 2}),
            {"a": seen("Running", pods=READY)},
            sent=refused("PolicyViolated"),
        ),
        {},
    ),
    (
        "what breaks a rule before it is sent ends at once",
        case(claimed(placement("a")), breaches=broken()["breaches"]),
        SENT_AWAY,
    ),
    (
        "what is stopped for a rule has its grace",
        case(running(placement("a"), **stopping(29)), **broken(grace=30)),
        {"phase": "Running", "reason": "", "claim": {"a": 2}},
    ),
    (
        "and ends after it",
        case(running(placement("a"), **stopping(30)), **broken(grace=30)),
        SENT_AWAY,
    ),
    (
        "for good, if it ran for too long",
        case(running(placement("a"), **stopping(30)), **broken(grace=30, rule="runSeconds")),
        SENT_AWAY,
    ),
    (
        "a rule of another cluster does not concern it",
        case(running(placement("a"), **stopping(30)), **broken(grace=30, cluster="b")),
        {"phase": "Running", "reason": "", "claim": {"a": 2}},
    ),
    (
        "a breaker that is open keeps it",
        case(running(placement("a"), **stopping(30)), **broken(grace=30), may_move=False),
        {"phase": "Running", "reason": "", "claim": {"a": 2}},
    ),
]

EVERY = [*GANG, *ASKED, *PLACES_TABLE, *SERVICES, *SWEEPS, *COPIES, *STOPPED, *POLICIES]
IDS = [sentence for sentence, _, _ in EVERY]


@pytest.mark.parametrize(("found", "expected"), [(c, e) for _, c, e in EVERY], ids=IDS)
def test_next_status(found: LifecycleCase, expected: dict[str, Any]) -> None:
    assert told(next_status(found)) == expected


@pytest.mark.parametrize("found", [c for _, c, _ in EVERY], ids=IDS)
def test_looking_again_changes_nothing(found: LifecycleCase) -> None:
    settled(found)


@pytest.mark.parametrize("found", [c for _, c, _ in EVERY], ids=IDS)
def test_a_place_is_never_claimed_and_left_in_one_attempt(found: LifecycleCase) -> None:
    """But where a service has some replicas leave a cluster and others stay."""
    before = found.workload.status
    status = next_status(found).status
    if status is None or status.claim is None or before.releasing:
        return
    held = {item.cluster: item.replicas for item in before.claim.placements} if before.claim else {}
    claimed_now = {
        (item.cluster, item.attempt)
        for item in status.claim.placements
        if item.replicas == held.get(item.cluster)
    }
    assert not claimed_now & {(item.cluster, item.attempt) for item in status.releasing}


MAY_FOLLOW = {
    "Waiting": {"Waiting", "Held", "Cancelled", "Claimed"},
    "Held": {"Waiting", "Cancelled", "Claimed"},
    "Stopping": {"Stopping", "Waiting", "Held", "Cancelled", "Failed"},
}
# With nothing to confirm, Stopping is over in the same write.
MAY_FOLLOW["Running"] = {"Running", "Succeeded", *MAY_FOLLOW["Stopping"]}
MAY_FOLLOW["Claimed"] = {"Claimed", *MAY_FOLLOW["Running"]}


@pytest.mark.parametrize("found", [c for _, c, _ in EVERY], ids=IDS)
def test_phases_move_along_the_table(found: LifecycleCase) -> None:
    status = next_status(found).status
    if status is not None:
        assert status.phase in MAY_FOLLOW[found.workload.status.phase or "Waiting"]


def test_the_status_of_a_gang_that_runs() -> None:
    found = case(claimed(placement("a")), {"a": seen("Running", ready_at=NOW - 3, pods=READY)})
    status = next_status(found).status
    assert status is not None
    assert codec.to_plain(status) == {
        "observedGeneration": 1,
        "phase": "Running",
        "startedAt": text(NOW - 3),
        "claim": {
            "attempt": 1,
            "term": 5,
            "decidedAt": text(NOW - 100),
            "placements": [
                {"cluster": "a", "attempt": 1, "podSets": [{"name": "worker", "count": 2}]}
            ],
            "readyAt": text(NOW - 3),
        },
        "pods": {"wanted": 2, "ready": 2},
        "conditions": [
            {
                "type": "Claimed",
                "status": "True",
                "observedGeneration": 1,
                "lastTransitionTime": text(NOW),
                "reason": "Idle",
            },
            {
                "type": "Ready",
                "status": "True",
                "observedGeneration": 1,
                "lastTransitionTime": text(NOW),
            },
        ],
    }


def test_the_receipt_of_an_attempt_that_failed() -> None:
    found = case(running(placement("a")), {"a": seen("Failed", exit_code=137, message="killed")})
    status = next_status(found).status
    assert status is not None
    assert codec.to_plain(status.history[-1]) == {
        "attempt": 1,
        "clusters": ["a"],
        "startedAt": text(NOW - 60),
        "endedAt": text(NOW),
        "reason": "Killed",
        "message": "killed",
        "lostSeconds": 60,
        "exitCode": 137,
    }
    assert status.ran_seconds == 60
    assert status.requeue is not None
    assert status.requeue.not_before == moment(NOW + 60)


def test_an_agent_whose_clock_is_wrong_does_not_move_the_start_out_of_its_claim() -> None:
    early = case(claimed(placement("a")), {"a": seen("Running", ready_at=1.0, pods=READY)})
    late = case(claimed(placement("a")), {"a": seen("Running", ready_at=NOW + 9999, pods=READY)})
    assert [next_status(item).status.started_at for item in (early, late)] == [  # type: ignore[union-attr] - both start
        moment(NOW - 100),
        moment(NOW),
    ]


def test_history_keeps_the_last_ten_attempts() -> None:
    past = [{"attempt": number, "reason": "NodeLost"} for number in range(10)]
    found = case(running(placement("a"), history=past), {"a": seen("Failed", **DISK)})
    status = next_status(found).status
    assert status is not None
    assert [item.attempt for item in status.history] == [*range(1, 10), 1]


def test_a_node_that_is_to_blame_is_set_aside() -> None:
    found = case(running(placement("a")), {"a": seen("Failed", node="n7", **DISK)})
    (one,) = next_status(found).nodes_aside
    assert (one.cluster, one.node.name, one.node.until) == ("a", "n7", moment(NOW + 1800))


def test_a_cluster_is_avoided_for_a_while_only() -> None:
    requeue = {"count": 1, "avoid": ["a"], "avoidUntil": text(NOW + 50)}
    waits = workload({"phase": "Waiting", "requeue": requeue})
    assert next_status(case(waits)).wake_at == NOW + 50
    status = next_status(case(waits, now=NOW + 50)).status
    assert status is not None
    assert told(Change(status=status)) == {"phase": "Waiting", "reason": "", "requeue": (1, ())}


def test_the_wait_is_no_part_of_the_time_for_which_a_cluster_is_avoided() -> None:
    status = next_status(case(claimed(placement("a")), {"a": seen("Failed", **PULL)})).status
    assert status is not None
    assert status.requeue is not None
    assert status.requeue.avoid_until == moment(NOW + 60 + AVOIDED_SECONDS)


class TestWaking:
    @pytest.mark.parametrize(
        ("found", "expected"),
        [
            pytest.param(
                case(claimed(placement("a"), claim={"deadline": text(NOW + 70)})),
                NOW + 70,
                id="a gang's deadline",
            ),
            pytest.param(
                case(running(placement("a"), pods={"wanted": 2}), settings=Settings(run_limit=100)),
                NOW + 40,
                id="the run limit",
            ),
            pytest.param(
                case(
                    running(placement("a"), pods={"wanted": 2}),
                    places={**PLACES, "a": ClusterFacts(taints=(NO_EXECUTE,))},
                    settings=Settings(tolerations=(BEARS,)),
                ),
                NOW + 10,
                id="toleration seconds",
            ),
            pytest.param(
                case(
                    running(placement("a"), pods={"wanted": 2}),
                    places=lost(SILENT - 7),
                    settings=MOVES,
                    sent=told_to_stop(900),
                ),
                NOW + 7,
                id="the silence after which it is replaced",
            ),
            pytest.param(
                case(
                    claimed(placement("a")),
                    {"a": seen("Pending", pods=PodsSeen(pending=2, pending_since=NOW - 100))},
                ),
                NOW + 200,
                id="pods that are pending",
            ),
            pytest.param(
                case(
                    workload({"phase": "Succeeded", "finishedAt": text(NOW - 10)}),
                    settings=Settings(finished_seconds=60),
                ),
                NOW + 50,
                id="the time for which it is kept",
            ),
            pytest.param(case(running(placement("a"), pods={"wanted": 2})), None, id="nothing"),
        ],
    )
    def test_it_wakes_for(self, found: LifecycleCase, expected: float | None) -> None:
        change = next_status(found)
        assert (change.status, change.wake_at) == (None, expected)


class TestRemoval:
    def test_what_is_over_is_deleted_when_its_time_is_up(self) -> None:
        found = workload({"phase": "Succeeded", "finishedAt": text(NOW - 60)})
        assert next_status(case(found, settings=Settings(finished_seconds=60))).delete

    def test_what_is_over_is_kept_for_ever_where_nothing_else_is_said(self) -> None:
        found = workload({"phase": "Succeeded", "finishedAt": text(1.0)})
        assert next_status(case(found)) == Change()

    def test_a_place_that_ends_after_all_is_over_is_given_back(self) -> None:
        left = {**STOPPING, "phase": "Succeeded", "finishedAt": text(NOW)}
        assert next_status(case(workload(left), {"a": seen("Stopping")})).status is None
        status = next_status(case(workload(left), {"a": seen("Gone")})).status
        assert status is not None
        assert (status.phase, status.releasing) == ("Succeeded", ())

    @pytest.mark.parametrize(
        ("status", "works", "expected"),
        [
            ({"phase": "Waiting"}, {}, True),
            ({"phase": "Succeeded"}, {"a": seen("Succeeded")}, True),
            (STOPPING, {"a": seen("Stopping")}, False),
            (STOPPING, {"a": seen("Gone")}, True),
        ],
        ids=["it waits", "it is over", "pods are left", "its pods are gone"],
    )
    def test_a_deleted_workload_goes_when_nothing_is_left(
        self, status: dict[str, Any], works: dict[str, Any], expected: bool
    ) -> None:
        found = workload(status, {"deletionTimestamp": text(NOW)})
        assert next_status(case(found, works)).releases == expected


class TestCounts:
    def test_counts_alone_are_no_reason_to_write_while_they_pass(self) -> None:
        found = running(placement("a", 10), pods={"wanted": 10, "ready": 4})
        works = {"a": seen("Running", pods=PodsSeen(ready=5, bound=5))}
        assert next_status(case(found, works, refreshes=False)).status is None
        assert next_status(case(found, works)).status is not None

    def test_reaching_the_number_that_matters_is(self) -> None:
        found = running(placement("a", 10), pods={"wanted": 10, "ready": 9})
        works = {"a": seen("Running", pods=PodsSeen(ready=10))}
        status = next_status(case(found, works, refreshes=False)).status
        assert status is not None
        assert status.pods.ready == 10


class TestResizing:
    def test_more_replicas_are_as_old_as_the_increase(self) -> None:
        found = running(replicas("a", 3), spec={**SERVICE, "replicas": 4}, pods={"wanted": 3})
        found = replace(found, metadata=replace(found.metadata, generation=2))
        status = applied(case(found), next_status(case(found))).workload.status
        assert (status.increased_at, status.observed_generation) == (moment(NOW), 2)
        settled(case(found))

    def test_fewer_pods_of_a_gang_are_given_up_at_once(self) -> None:
        found = _resized(5, 3)
        status = next_status(case(found)).status
        assert status is not None
        assert status.claim is not None
        assert status.claim.placements[0].pod_sets[0].count == 3
        settled(case(found))

    def test_more_pods_of_a_gang_are_waited_for_as_old_as_the_increase(self) -> None:
        found = _resized(3, 5)
        status = next_status(case(found)).status
        assert status is not None
        assert status.claim is not None
        assert status.claim.placements[0].pod_sets[0].count == 3
        shown = {
            condition.type: (condition.status, condition.reason) for condition in status.conditions
        }
        assert shown["Resized"] == ("False", "WaitsForRoom")
        assert status.increased_at == moment(NOW)
        settled(case(found))


def _resized(held: int, wanted: int) -> Workload:
    spec = {"podSets": [{"name": "worker", "count": wanted}]}
    found = running(placement("a", held), spec=spec, pods={"wanted": held})
    return replace(found, metadata=replace(found.metadata, generation=2))


def test_silence_that_is_all_but_over_is_not_asked_for_at_once() -> None:
    """It is measured by looks, so that asking in between finds it as it was."""
    found = next_status(
        case(
            running(placement("a")),
            places=lost(SILENT - 1e-6),
            settings=MOVES,
            sent=told_to_stop(900),
        )
    )
    assert found.wake_at is not None
    assert found.wake_at >= NOW + 0.05


def test_a_gang_that_runs_where_it_is_no_longer_allowed_stays_and_says_so() -> None:
    asked = case(running(placement("a")), outside=frozenset({"a", "b"}))
    status = next_status(asked).status
    assert status is not None
    assert status.claim is not None
    (told,) = [condition for condition in status.conditions if condition.type == "Allowed"]
    assert (told.status, told.reason) == ("False", "NoLongerAllowed")
    assert "runs in a," in told.message
    settled(asked)
    later = next_status(with_fields(asked, workload=replace(asked.workload, status=status)))
    assert later.status is None, "nothing has changed"
    back = with_fields(
        asked, workload=replace(asked.workload, status=status), outside=frozenset({"b"})
    )
    again = next_status(back).status
    assert again is not None
    assert all(condition.type != "Allowed" for condition in again.conditions)
