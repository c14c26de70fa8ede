"""`fairway top`: the fleet at a glance, refreshed on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import click
from rich.live import Live
from rich.text import Text

from fairway.api.cluster import Cluster
from fairway.api.errors import ApiError
from fairway.api.flavor import Flavor
from fairway.api.names import OVER
from fairway.api.report import ClusterReport
from fairway.cli import ages, options, queue_tree, render_objects, render_table, terminal
from fairway.cli.capacity import Room, rooms
from fairway.cli.commands import Command
from fairway.cli.holdings import gpus_of
from fairway.cli.options import Duration
from fairway.cli.render_table import Grid
from fairway.cli.session import Session, current
from fairway.cli.workloads import (
    clusters_of,
    name_of,
    phase_of,
    queue_of,
    shown_phase,
    status_of,
)
from fairway.client.asynchronous import WORKLOADS
from fairway.client.errors import ConnectionFailed
from fairway.client.wire import Object, Scope

EXAMPLES = """
    fairway top                  clusters and queues, refreshed until Ctrl-C
    fairway top clusters         what each has and has free, by flavor
    fairway top workloads -A     who uses most, and who waits longest
    fairway top queues --once    one look
    fairway top clusters -o json
"""
CLUSTERS = ["CLUSTER", "STATE", "FLAVOR", "RESOURCE", "NODES", "TOTAL", "USED", "FREE", "TO COME"]
RUNNING = ["NAMESPACE", "NAME", "QUEUE", "PHASE", "PRIORITY", "CLUSTERS", "GPUS", "PODS", "SINCE"]
ROWS_MOST = 40

Lines = list[Text | str]


@click.command(cls=Command, examples=EXAMPLES)
@click.argument(
    "what",
    default="",
    metavar="[clusters|queues|workloads]",
    type=click.Choice(["", "clusters", "queues", "workloads"]),
)
@click.option("--once", is_flag=True, help="Print once and exit.")
@click.option(
    "--interval", type=Duration(), default=2.0, metavar="TIME", help="Refresh interval: 2s."
)
@options.all_namespaces
@options.output()
def top(*, what: str, once: bool, interval: float, all_namespaces: bool, output: str) -> int:
    """Show clusters, queues and workloads as they are now.

    On a terminal it goes on until Ctrl-C; with -o, --once or into a pipe it looks once.
    """
    session = current()
    namespace = None if all_namespaces else session.namespace
    if output not in {"table", "wide"}:
        result = [_plain(session, what or "clusters", namespace)]
        click.echo(render_objects.render(output, result, is_single=True))
        return 0

    def draw() -> Lines:
        return _DRAWN[what](session, namespace)

    if once or not terminal.is_rich():
        terminal.write(draw())
        return 0
    return _refresh(draw, max(interval, 0.5))


def _refresh(draw: Callable[[], Lines], interval: float) -> int:
    """Draws until interrupted; waits for a hub that does not answer."""
    try:
        with Live(console=terminal.console(), screen=True, auto_refresh=False) as live:
            while True:
                try:
                    drawn = draw()
                except (ApiError, ConnectionFailed) as error:
                    drawn = [Text(str(error), style="bold red")]
                height = terminal.console().height
                shown = [item if isinstance(item, Text) else Text(item) for item in drawn]
                live.update(Text("\n").join(shown[:height]), refresh=True)
                time.sleep(interval)
    except KeyboardInterrupt:
        return 0


def _overview(session: Session, namespace: str | None) -> Lines:
    return [
        *_fleet(session),
        "",
        *_clusters(session, namespace),
        "",
        *_queues(session, namespace),
    ]


def _fleet(session: Session) -> Lines:
    """The header: the fleet's phase and totals."""
    queues = queue_tree.read(session)
    roots = [queue for queue in queues if not queue.get("parent")]
    waiting = sum(int(root["waiting"]) for root in roots)
    running = sum(int(root["running"]) for root in roots)
    starting = sum(int(root["claimed"]) for root in roots) - running
    status, spec = _fleet_object(session)
    # The status is updated a moment later.
    phase = "Paused" if spec.get("paused") else str(status.get("phase") or "Running")
    phase = "Running" if phase == "Paused" and not spec.get("paused") else phase
    why = f" ({spec['pauseReason']})" if spec.get("paused") and spec.get("pauseReason") else ""
    counts = f"{running} running, {starting} starting, {waiting} waiting"
    clock = time.strftime("%H:%M:%S")
    shown = terminal.state(phase) if terminal.is_rich() else phase
    return [Text.assemble(("Fleet ", "bold"), shown, f"{why}   {counts}   {clock}")]


def _fleet_object(session: Session) -> tuple[Mapping[str, object], Mapping[str, object]]:
    try:
        fleet = session.client.get("fleets.fairway.dev", "fleet")
    except ApiError:
        return {}, {}
    return fleet.get("status") or {}, fleet.get("spec") or {}


def _clusters(session: Session, namespace: str | None) -> Lines:
    clusters, rooms = _rooms(session)
    states = {cluster.metadata.name: _state(cluster) for cluster in clusters}
    rows = []
    for name in sorted(states):
        mine = [room for room in rooms if room.cluster == name]
        for at, room in enumerate(mine):
            head = [name, states[name]] if at == 0 else [" ", " "]
            rows.append([*head, *_room(room)])
        if not mine:
            rows.append([name, states[name], *[""] * (len(CLUSTERS) - 2)])
    if not rows:
        return ["No clusters found"]
    return list(render_table.lines(Grid(CLUSTERS, rows)))


def _rooms(session: Session) -> tuple[list[Cluster], list[Room]]:
    clusters = session.client.kind(Cluster).list()
    reports = session.client.kind(ClusterReport).list()
    return clusters, rooms(clusters, reports, session.client.kind(Flavor).list())


def _state(cluster: Cluster) -> str:
    """Its phase; or held or draining, if it is set so."""
    phase = cluster.status.phase or "Pending"
    held = {"Hold": "Held", "HoldAndDrain": "Draining"}.get(cluster.spec.hold)
    return held if held and phase in ("Ready", "Held") else phase


def _room(room: Room) -> list[str]:
    amounts = (room.total, room.used, room.free)
    to_come = room.show(room.to_come) if room.to_come else ""
    shown = [room.show(amount) for amount in amounts]
    return [room.flavor, room.resource, str(room.nodes), *shown, to_come]


def _queues(session: Session, namespace: str | None) -> Lines:
    queues = queue_tree.read(session)
    if not queues:
        return ["No queues found"]
    return list(render_table.lines(queue_tree.grid(queues)))


def _workloads(session: Session, namespace: str | None) -> Lines:
    """Workloads that hold something, largest first; then those that wait, oldest first."""
    workloads = _live(session, namespace)
    if not workloads:
        return ["No workloads run or wait" + (f" in namespace {namespace}." if namespace else ".")]
    with_namespace = namespace is None
    rows = [_workload(entry) for entry in workloads[:ROWS_MOST]]
    grid = Grid(
        RUNNING if with_namespace else RUNNING[1:],
        rows if with_namespace else [row[1:] for row in rows],
    )
    more = len(workloads) - len(rows)
    return [*render_table.lines(grid), *([f"and {more} more"] if more > 0 else [])]


def _live(session: Session, namespace: str | None) -> list[Object]:
    items = session.client.list(WORKLOADS, scope=Scope(namespace=namespace)).items
    result = [entry for entry in items if phase_of(entry) not in OVER]
    return sorted(result, key=_rank)


def _rank(workload: Object) -> tuple[bool, float, str, str]:
    metadata = workload["metadata"]
    is_waiting = not clusters_of(workload)
    return (is_waiting, -gpus_of(workload), metadata["creationTimestamp"], name_of(workload))


def _workload(entry: Object) -> list[str]:
    status, metadata = status_of(entry), entry["metadata"]
    pods = status.get("pods") or {}
    wanted = int(pods.get("wanted") or 0)
    ready = int(pods.get("ready") or 0) + int(pods.get("succeeded") or 0)
    gpus = gpus_of(entry)
    since = status.get("startedAt") or status.get("queuedAt") or metadata["creationTimestamp"]
    return [
        str(metadata["namespace"]),
        name_of(entry),
        queue_of(entry),
        shown_phase(phase_of(entry)),
        str(status.get("priority") or entry["spec"].get("priority") or 0),
        ",".join(clusters_of(entry)),
        f"{gpus:g}" if gpus else "",
        f"{ready}/{wanted}" if wanted else "",
        ages.since(since),
    ]


def _plain(session: Session, what: str, namespace: str | None) -> Object:
    """The same data for programs."""
    match what:
        case "queues":
            return {"queues": queue_tree.read(session)}
        case "workloads":
            keys = [name.lower() for name in RUNNING]
            rows = [
                dict(zip(keys, _workload(entry), strict=True))
                for entry in _live(session, namespace)
            ]
            return {"workloads": rows}
        case _:
            clusters, rooms = _rooms(session)
            return {"clusters": [_plain_cluster(cluster, rooms) for cluster in clusters]}


def _plain_cluster(cluster: Cluster, rooms: Sequence[Room]) -> Object:
    mine = [room for room in rooms if room.cluster == cluster.metadata.name]
    return {
        "name": cluster.metadata.name,
        "state": _state(cluster),
        "rooms": [
            {
                "flavor": room.flavor,
                "resource": room.resource,
                "nodes": room.nodes,
                "total": room.show(room.total),
                "used": room.show(room.used),
                "free": room.show(room.free),
                "toCome": room.show(room.to_come),
            }
            for room in mine
        ],
    }


_DRAWN: Mapping[str, Callable[[Session, str | None], Lines]] = {
    "": _overview,
    "clusters": _clusters,
    "queues": _queues,
    "workloads": _workloads,
}
