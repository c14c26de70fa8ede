"""Queues as a tree: what each owns, uses, borrows and lends, and who is next."""

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
_BLANK = " "  # a cell that continues the one above it, rather than one without a value


def read(session: Session) -> list[Object]:
    """How all queues stand, parents first."""
    found = session.client.ask("fleets.fairway.dev", "fleet", "standing")
    return list(found.get("queues") or ())


def below(queues: Sequence[Object], name: str) -> list[Object]:
    """A queue with all that is below it; parents first."""
    if not any(one["queue"] == name for one in queues):
        known = ", ".join(sorted(one["queue"] for one in queues)[:8])
        raise Failure(f"there is no queue {name}" + (f" (there are: {known})" if known else ""))
    kept = {name}
    for one in queues:
        if one.get("parent") in kept:
            kept.add(one["queue"])
    return [one for one in queues if one["queue"] in kept]


def grid(queues: Sequence[Object], *, is_wide: bool = False) -> Grid:
    """The tree as a table: a row for each queue, and further ones for further flavors."""
    rows = []
    for drawn, rest, one in _walk(queues):
        holdings = _holdings(one, is_wide) or [{}]
        for at, holding in enumerate(holdings):
            rows.append([*(_head(drawn, one) if at == 0 else _more(rest)), *_amounts(holding)])
            rows[-1].append(_next(one) if at == 0 else _BLANK)
    return Grid(HEADINGS, rows)


def _walk(queues: Sequence[Object]) -> Iterator[tuple[str, str, Object]]:
    """Each queue with its name in the tree, and what stands in the lines below its name."""
    names = {one["queue"] for one in queues}
    children: dict[str, list[Object]] = {}
    for one in queues:
        parent = one.get("parent") or ""
        children.setdefault(parent if parent in names else "", []).append(one)
    roots = sorted(children.get("", ()), key=lambda one: str(one["queue"]))
    for root in roots:
        name = str(root["queue"])
        yield name, "│" if name in children else "", root
        yield from _branches(children, name, "")


def _branches(
    children: dict[str, list[Object]], parent: str, before: str
) -> Iterator[tuple[str, str, Object]]:
    mine = sorted(children.get(parent, ()), key=lambda one: str(one["queue"]))
    for at, one in enumerate(mine):
        is_last, name = at == len(mine) - 1, str(one["queue"])
        inner = before + ("   " if is_last else "│  ")
        below_it = inner + ("│" if name in children else "")
        yield before + ("└─ " if is_last else "├─ ") + name, below_it, one
        yield from _branches(children, name, inner)


def _holdings(one: Object, is_wide: bool) -> list[Object]:
    """Of accelerators, unless there are none or all is asked for."""
    found = list(one.get("holdings") or ())
    accelerators = [each for each in found if is_accelerator(each["resource"])]
    return found if is_wide else accelerators or found


def _head(drawn: str, one: Object) -> list[str]:
    return [drawn, str(one["waiting"]), str(one["running"]), share(one)]


def _more(rest: str) -> list[str]:
    return [rest.rstrip() or _BLANK, _BLANK, _BLANK, _BLANK]


def share(one: Object) -> str:
    """The weighted dominant share; of a root there is none to compare with."""
    thousandths = one.get("share")
    return "∞" if thousandths is None else f"{thousandths / 1000:.2f}"


def _amounts(holding: Object) -> list[str]:
    keys = ("flavor", "resource", "nominal", "used", "borrowed", "lent")
    return [str(holding.get(key) or "") for key in keys]


def _next(one: Object) -> str:
    heads = one.get("heads") or ()
    return str(heads[0]) if heads else ""
