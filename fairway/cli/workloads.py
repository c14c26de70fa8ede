"""Workloads for people: found by the words of a command line, and described in one line.

A workload of a native object may be named by that object: `job/train` is the workload `job-train`,
and so is `train` if no other workload has that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairway.api.discretion import ANOTHER
from fairway.api.errors import NotFound
from fairway.api.names import OVER
from fairway.cli import ages
from fairway.cli.session import Failure, Session
from fairway.client.asynchronous import WORKLOADS
from fairway.client.errors import UnknownKind
from fairway.client.wire import Object, Scope
from fairway.clock import parse_timestamp

STARTED = ("Running", *OVER)
# Exit codes of a workload's final phase.
EXIT_CODES: Mapping[str, int] = {"Succeeded": 0, "Running": 0, "Failed": 1, "Cancelled": 1}
TIMED_OUT = 124
INTERRUPTED = 130


def find(session: Session, word: str) -> Object:
    """The workload that a word of the command line names."""
    kind, slash, name = word.rpartition("/")
    if not name or "/" in kind or (slash and not kind):
        raise Failure(f"write a workload as NAME or KIND/NAME; this is neither: {word}")
    if slash and not _is_workload(session, kind):
        return _get(session, f"{_kind_word(session, kind)}-{name}")
    try:
        return _get(session, name)
    except NotFound:
        sources = [
            entry
            for entry in session.client.list(
                WORKLOADS, scope=Scope(namespace=session.namespace)
            ).items
            if (entry["spec"].get("source") or {}).get("name") == name
        ]
        if len(sources) != 1 or slash:
            raise
        return sources[0]


def _get(session: Session, name: str) -> Object:
    return session.client.get(WORKLOADS, name, namespace=session.namespace)


def _is_workload(session: Session, kind: str) -> bool:
    try:
        return session.client.resolve(kind).kind == "Workload"
    except UnknownKind:
        return False


def _kind_word(session: Session, kind: str) -> str:
    """The full kind; a kind that the hub does not serve is taken as written."""
    try:
        return session.client.resolve(kind).kind.lower()
    except UnknownKind:
        return kind.lower()


def name_of(workload: Object) -> str:
    return str(workload["metadata"]["name"])


def key_of(workload: Object) -> str:
    return f"{workload['metadata'].get('namespace', '')}/{name_of(workload)}"


def status_of(workload: Object) -> dict[str, Any]:
    return workload.get("status") or {}


def shown_phase(phase: str) -> str:
    """A phase as shown to people: Claimed is Starting."""
    return "Starting" if phase == "Claimed" else phase


def phase_of(workload: Object) -> str:
    """Its phase; a new workload has no status yet, and waits."""
    return str(status_of(workload).get("phase") or "Waiting")


def is_over(workload: Object) -> bool:
    return phase_of(workload) in OVER


def is_settled(workload: Object) -> bool:
    """Whether there is nothing more to wait for: it is over, or it is a running service."""
    is_service = workload["spec"].get("mode") == "Divided" and not _has_copies(workload)
    return is_over(workload) or (is_service and phase_of(workload) == "Running")


def _has_copies(workload: Object) -> bool:
    """Whether copies of it run to completion: it is over once all have."""
    return (status_of(workload).get("claim") or {}).get("missingCopies") is not None


def queue_of(workload: Object) -> str:
    return str(status_of(workload).get("queue") or workload["spec"].get("queue") or "")


def clusters_of(workload: Object) -> list[str]:
    """The clusters where it is, or that it is leaving."""
    status = status_of(workload)
    placements = [*((status.get("claim") or {}).get("placements") or ())]
    placements += status.get("releasing") or ()
    return list(
        dict.fromkeys(placement["cluster"] for placement in placements if placement.get("cluster"))
    )


def attempt_of(workload: Object) -> int:
    """The current attempt, or the last one."""
    status = status_of(workload)
    if claim := status.get("claim"):
        return int(claim.get("attempt") or 0)
    history = status.get("history") or ()
    return int(history[-1].get("attempt") or 0) if history else 0


def exit_code(workload: Object, *, of_program: bool = False) -> int:
    """The exit code of a command that waited for it; with `of_program`, the program's own."""
    code = EXIT_CODES.get(phase_of(workload), 1)
    history = status_of(workload).get("history") or ()
    if of_program and code and history:
        return int(history[-1].get("exitCode") or code)
    return code


def line(workload: Object, why: str = "", *, with_time: bool = False) -> str:
    """What a workload does, in one line; `why` explains why it waits."""
    status = status_of(workload)
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    match phase_of(workload):
        case "Waiting":
            queue = f" in queue {queue_of(workload)}" if queue_of(workload) else ""
            said = f": {why or reason}" if why or reason else ""
            return f"waits{queue}{copies(status)}{said}"
        case "Claimed":
            return f"starts in {_where(workload)}{_pods(status)}{copies(status)}{_first(status)}"
        case "Running":
            started = status.get("startedAt")
            spent = f" for {ages.since(started)}" if started and with_time else ""
            return f"runs in {_where(workload)}{spent}{_pods(status)}{copies(status)}"
        case "Stopping":
            return f"stops in {_where(workload)}" + (f": {message or reason}" if reason else "")
        case "Held":
            return "is held"
        case "Succeeded":
            return f"succeeded{_took(status)}"
        case "Failed":
            code = _last(status).get("exitCode")
            tail = f" with exit code {code}" if code else ""
            said = message or reason
            return f"failed{tail}" + (f": {said}" if said else "")
        case other:
            return other.lower()


def why_waiting(explanation: Mapping[str, Any]) -> str:
    """The reason why a workload waits; it may have been admitted meanwhile."""
    if explanation.get("state") in ("Starts", "Runs"):
        where = " and ".join(cluster for cluster in explanation.get("clusters") or () if cluster)
        return f"about to start in {where}" if where else "about to start"
    return str(explanation.get("message") or "")


def _where(workload: Object) -> str:
    return ", ".join(clusters_of(workload)) or "no cluster, by quota alone"


def _pods(status: Mapping[str, Any]) -> str:
    pods = status.get("pods") or {}
    wanted = int(pods.get("wanted") or 0)
    if not wanted:
        return ""
    ready = int(pods.get("ready") or 0) + int(pods.get("succeeded") or 0)
    return f", {ready} of {wanted} pod{'s' if wanted != 1 else ''} ready"


def copies(status: Mapping[str, Any]) -> str:
    """How many copies of a workload have succeeded, of how many if that is known."""
    over, claim = len(status.get("succeededClusters") or ()), status.get("claim") or {}
    missing = claim.get("missingCopies")
    if missing is None:
        return f", {over} {'copies' if over != 1 else 'copy'} succeeded" if over else ""
    total = over + len(claim.get("placements") or ()) + int(missing)
    return f", {over} of {total} {'copies' if total != 1 else 'copy'} succeeded"


def mention(workload: Mapping[str, Any]) -> str:
    """The name of a workload that another one refers to; those of other namespaces have none."""
    return str(workload.get("name") or ANOTHER)


def _first(status: Mapping[str, Any]) -> str:
    """What must happen before it runs."""
    said = []
    for item in (status.get("claim") or {}).get("waitsFor") or ():
        match item.get("type"):
            case "Preemption":
                said.append(f"{mention(item.get('workload') or {})} is gone")
            case "Provision":
                count = int(item.get("count") or 0)
                nodes = f"{count} node{'s' if count != 1 else ''}"
                said.append(f"{nodes} of {item.get('pool')} {'come' if count != 1 else 'comes'}")
            case "Data":
                said.append(f"{item.get('data')} arrives")
    shown = [*said[:3], *(["others are gone"] if len(said) > 3 else [])]
    return f", when {' and '.join(shown)}" if shown else ""


def _took(status: Mapping[str, Any]) -> str:
    started, finished = status.get("startedAt"), status.get("finishedAt")
    if not started or not finished:
        return ""
    return f" after {ages.span(parse_timestamp(finished) - parse_timestamp(started))}"


def _last(status: Mapping[str, Any]) -> dict[str, Any]:
    history = status.get("history") or ()
    return dict(history[-1]) if history else {}
