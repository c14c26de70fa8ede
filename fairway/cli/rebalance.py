"""`fairway rebalance`: services are divided over clusters afresh, once."""

from __future__ import annotations

import time

import click

from fairway.cli import options, terminal, workloads
from fairway.cli.commands import Command
from fairway.cli.completion import complete_workloads
from fairway.cli.session import Failure, Session, current
from fairway.client.asynchronous import WORKLOADS
from fairway.client.wire import Object, Scope
from fairway.clock import timestamp

EXAMPLES = """
    fairway rebalance chat              divide its replicas afresh
    fairway rebalance -l tier=serving   all services with this label
    fairway rebalance --all             all services of the namespace
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("words", nargs=-1, metavar="[WORKLOAD]...", shell_complete=complete_workloads)
@options.selector
@click.option("--all", "everything", is_flag=True, help="All services of the namespace.")
@options.all_namespaces
@options.dry_run
def rebalance(
    *,
    words: tuple[str, ...],
    selector: str,
    everything: bool,
    all_namespaces: bool,
    dry_run: str,
) -> int:
    """Divide the replicas of services afresh, wherever they run now.

    Each moves once its replacement is ready, or within the disruption budget.
    """
    session = current()
    if bool(words) == bool(selector or everything):
        raise Failure("say which ones: give names, or a selector with -l, or --all")
    if words:
        services = [_service(workloads.find(session, word)) for word in words]
    else:
        services = _services(session, selector, all_namespaces)
    spec = {"spec": {"rebalanceAt": timestamp(time.time())}}
    for service in services:
        namespace, name = service["metadata"]["namespace"], workloads.name_of(service)
        is_dry = dry_run == "server"
        session.client.patch(WORKLOADS, name, spec, namespace=namespace, dry_run=is_dry)
        label = f"workload.fairway.dev/{name} will be rebalanced"
        terminal.write([f"{label}{' (server dry run)' if is_dry else ''}"])
    if not services:
        terminal.write(["No services found."])
    return 0


def _service(workload: Object) -> Object:
    if not _is_service(workload):
        name = workloads.name_of(workload)
        raise Failure(f"{name} has no replicas to divide: only mode Divided can be rebalanced")
    return workload


def _services(session: Session, selector: str, all_namespaces: bool) -> list[Object]:
    scope = Scope(namespace=None if all_namespaces else session.namespace, labels=selector)
    listed = session.client.list(WORKLOADS, scope=scope).items
    return [
        workload for workload in listed if _is_service(workload) and not workloads.is_over(workload)
    ]


def _is_service(workload: Object) -> bool:
    return bool(workload["spec"].get("mode") == "Divided")
