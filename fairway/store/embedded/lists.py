"""Lists: a page of a kind's objects, at the newest version or at an older one.

A list that continues shows the objects as they were when it began: the history undoes later
changes. If the history does not reach back that far, the list is Expired and the reader starts
again.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from fairway.api.errors import BadRequest, Expired, FieldError, Invalid, forbidden, not_supported
from fairway.resources.resource import Resource
from fairway.store.embedded.history import History
from fairway.store.embedded.refusals import too_large
from fairway.store.embedded.selection import selects
from fairway.store.embedded.shelves import Name, Record, Shelf, Shelves
from fairway.store.interface import Listing, Page, Selection, Stored


class _Token(msgspec.Struct, array_like=True):
    """A continue token: the version of the list, and the last name returned."""

    version: int
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class _Where:
    version: int
    after: Name | None


def parse_version(text: str) -> int:
    """A resourceVersion as a number; empty text is 0."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise BadRequest(f'invalid resource version: "{text}"')
    return int(text)


def answer(
    resource: Resource,
    selection: Selection,
    page: Page,
    *,
    shelves: Shelves,
    history: History,
    version: int,
) -> Listing:
    """One page of a list. `version` is the newest that reads may see."""
    where = _where(page, version)
    if not history.has(where.version):
        raise Expired(
            "The provided continue parameter is too old to display a consistent list result. "
            "You can start a new list without the continue parameter."
        )
    shelf = shelves.shelf((resource.group, resource.plural))
    before = history.undo(shelf.kind, where.version) if where.version < version else {}
    test = selects(selection, resource)
    result: list[Stored] = []
    last: Name | None = None
    names = _names(shelf, before, selection, where.after)
    for index, name in enumerate(names):
        record = before[name] if name in before else shelf.records.get(name)
        if record is None or not test(record):
            continue
        if page.limit and len(result) == page.limit and last is not None:
            is_plain = not selection.labels and not selection.fields
            return Listing(
                items=result,
                version=str(where.version),
                continue_from=_render(_Token(where.version, *last)),
                remaining=len(names) - index if is_plain else None,
            )
        result.append(record.as_stored(resource))
        last = name
    return Listing(items=result, version=str(where.version))


def _where(page: Page, version: int) -> _Where:
    if page.continue_from:
        token = _parse(page.continue_from)
        if token.version > version:
            raise Expired("the continue parameter is of another history of this store")
        return _Where(token.version, (token.namespace, token.name))
    asked = parse_version(page.version)
    fault = _match_fault(page, asked)
    if fault is not None:
        raise Invalid.of("ListOptions", "meta.k8s.io", "", [fault])
    if asked > version:
        raise too_large(asked, version)
    is_exact = page.match == "Exact" or (page.limit and asked and not page.match)
    return _Where(asked if is_exact else version, None)


def _match_fault(page: Page, asked: int) -> FieldError | None:
    path = "resourceVersionMatch"
    if page.match and not page.version:
        return forbidden(path, f"{path} is forbidden unless resourceVersion is provided")
    if page.match not in ("", "Exact", "NotOlderThan"):
        return not_supported(path, page.match, ["Exact", "NotOlderThan", ""])
    if page.match == "Exact" and not asked:
        return forbidden(path, f'{path} "Exact" is forbidden for resourceVersion "0"')
    return None


def _names(
    shelf: Shelf,
    before: Mapping[Name, Record | None],
    selection: Selection,
    after: Name | None,
) -> list[Name]:
    names = shelf.names()
    gone = [name for name, record in before.items() if record and name not in shelf.records]
    if gone:
        names = sorted([*names, *gone])
    start, end = _span(names, selection.namespace)
    if after is not None:
        start = max(start, bisect_right(names, after))
    return names[start:end] if start or end < len(names) else names


def _span(names: list[Name], namespace: str) -> tuple[int, int]:
    """The range of a namespace in sorted names."""
    if not namespace:
        return 0, len(names)
    return bisect_left(names, (namespace, "")), bisect_left(names, (namespace + "\0", ""))


def records(shelf: Shelf, selection: Selection) -> list[Record]:
    """The current records of a namespace, or all, in order."""
    names = shelf.names()
    start, end = _span(names, selection.namespace)
    return [shelf.records[name] for name in names[start:end]]


def _render(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _parse(text: str) -> _Token:
    try:
        padded = text + "=" * (-len(text) % 4)
        return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=_Token)
    except (msgspec.MsgspecError, binascii.Error, ValueError) as fault:
        raise BadRequest("continue key is not valid") from fault
