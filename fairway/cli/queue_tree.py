"""Queues as a tree: what each owns, uses, borrows and lends, and which workload is next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairway.api.amounts import is_accelerator
from fairway.cli.render_table import Grid
from fairway.cli.session import Failure, Session
from fairway.client.wire import Object

HEADINGS = [
    "QUEUE",
    "WAITING",
    "RUNNING",
    "SHARE",
    "FLAVOR",
    "RESOURCE",
    "NOMINAL",
    "USED",
    "BORROWED",
    "LENT",
    "NEXT",
]
_BLANK = " "  # a cell that continues the one above it, unlike an empty one


def read(session: Session) -> list[Object]:
    """The state of all queues, parents first."""
    answer = session.client.ask("fleets.fairway.dev", "fleet", "standing")
    return list(answer.get("queues") or ())


def below(queues: Sequence[Object], name: str) -> list[Object]:
    """A queue with all queues below it; parents first."""
    if not any(queue["queue"] == name for queue in queues):
        known = ", ".join(sorted(queue["queue"] for queue in queues)[:8])
        raise Failure(f"there is no queue {name}" + (f" (there are: {known})" if known else ""))
    kept = {name}
    for queue in queues:
        if queue.get("parent") in kept:
            kept.add(queue["queue"])
    return [queue for queue in queues if queue["queue"] in kept]


def grid(queues: Sequence[Object], *, is_wide: bool = False) -> Grid:
    """The tree as a table: a row for each queue, and further rows for further flavors."""
    rows = []
    for drawn, rest, value in _walk(queues):
        holdings = _holdings(value, is_wide) or [{}]
        for at, holding in enumerate(holdings):
            rows.append([*(_head(drawn, value) if at == 0 else _more(rest)), *_amounts(holding)])
            rows[-1].append(_next(value) if at == 0 else _BLANK)
    return Grid(HEADINGS, rows)


def _walk(queues: Sequence[Object]) -> Iterator[tuple[str, str, Object]]:
    """Each queue with its name as drawn in the tree, and the drawing of the lines below it."""
    names = {queue["queue"] for queue in queues}
    children: dict[str, list[Object]] = {}
    for queue in queues:
        parent = queue.get("parent") or ""
        children.setdefault(parent if parent in names else "", []).append(queue)
    roots = sorted(children.get("", ()), key=lambda child: str(child["queue"]))
    for root in roots:
        name = str(root["queue"])
        yield name, "│" if name in children else "", root
        yield from _branches(children, name, "")


def _branches(
    children: dict[str, list[Object]], parent: str, before: str
) -> Iterator[tuple[str, str, Object]]:
    mine = sorted(children.get(parent, ()), key=lambda child: str(child["queue"]))
    for at, value in enumerate(mine):
        is_last, name = at == len(mine) - 1, str(value["queue"])
        inner = before + ("   " if is_last else "│  ")
        below_it = inner + ("│" if name in children else "")
        yield before + ("└─ " if is_last else "├─ ") + name, below_it, value
        yield from _branches(children, name, inner)


def _holdings(entry: Object, is_wide: bool) -> list[Object]:
    """Holdings of accelerators; all holdings if there are none, or if wide."""
    holdings = list(entry.get("holdings") or ())
    accelerators = [each for each in holdings if is_accelerator(each["resource"])]
    return holdings if is_wide else accelerators or holdings


def _head(drawn: str, entry: Object) -> list[str]:
    return [drawn, str(entry["waiting"]), str(entry["running"]), share(entry)]


def _more(rest: str) -> list[str]:
    return [rest.rstrip() or _BLANK, _BLANK, _BLANK, _BLANK]


def share(entry: Object) -> str:
    """The weighted dominant share; None is infinite."""
    thousandths = entry.get("share")
    return "∞" if thousandths is None else f"{thousandths / 1000:.2f}"


def _amounts(holding: Object) -> list[str]:
    keys = ("flavor", "resource", "nominal", "used", "borrowed", "lent")
    return [str(holding.get(key) or "") for key in keys]


def _next(entry: Object) -> str:
    heads = entry.get("heads") or ()
    return str(heads[0]) if heads else ""
