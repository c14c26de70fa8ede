"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386), as a kube-apiserver applies them.

The server is more lenient than RFC 6902 in two places, and clients rely on it: `replace` of a
missing key adds it, and a negative index counts from the end of a list. In a merge patch, nulls
are removed from objects inside new lists too. Documents and patches are never changed; a result may
share parts with both.

What `copy` adds is limited in all, as on a kube-apiserver: each copy can double a document.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import msgspec

from fairway.api.equality import same
from fairway.api.errors import BadRequest, Invalid, TooLarge

OPERATIONS_MAX = 10_000
COPIED_BYTES_MAX = 3 << 20
_WITH_VALUE = ("add", "replace", "test")
_WITH_FROM = ("move", "copy")
_encode = msgspec.json.Encoder().encode


class _Fault(Exception):
    """Why an operation failed."""


def json_patch(document: Any, operations: Any) -> Any:
    """The document after all operations, in order; if one fails, none is applied."""
    if not isinstance(operations, list):
        raise BadRequest("error decoding patch: a JSON patch must be a list of operations")
    if len(operations) > OPERATIONS_MAX:
        raise TooLarge(
            f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, "
            f"got {len(operations)}"
        )
    for operation in operations:
        if not isinstance(operation, Mapping):
            raise BadRequest("error decoding patch: an operation must be an object")
    patched = copy.deepcopy(document)
    copied = 0
    try:
        for operation in operations:
            copied += _copied_bytes(patched, operation)
            if copied > COPIED_BYTES_MAX:
                raise TooLarge(
                    "Unable to complete the copy, the accumulated size increase of copy is "
                    f"{copied}, exceeding the limit {COPIED_BYTES_MAX}"
                )
            patched = _carry_out(patched, operation)
    except _Fault as fault:
        raise Invalid(
            f"the server rejected our request due to an error in our request: {fault}"
        ) from None
    return patched


def _copied_bytes(document: Any, operation: Mapping[str, Any]) -> int:
    """What an operation adds to a document from the document itself."""
    if operation.get("op") != "copy":
        return 0
    return len(_encode(_get(document, _pointer(operation, "from"))))


def _carry_out(document: Any, operation: Mapping[str, Any]) -> Any:
    kind = operation.get("op")
    path = _pointer(operation, "path")
    if kind in _WITH_VALUE:
        if "value" not in operation:
            raise _Fault(f"{kind} operation does not have a value: {_show(path)}")
        value = copy.deepcopy(operation["value"])
    if kind in _WITH_FROM:
        source = _pointer(operation, "from")
        value = _get(document, source)
    match kind:
        case "add":
            return _add(document, path, value)
        case "remove":
            return _remove(document, path)
        case "replace":
            return _replace(document, path, value)
        case "test":
            return _test(document, path, value)
        case "copy":
            return _add(document, path, copy.deepcopy(value))
        case "move":
            if path[: len(source)] == source and path != source:
                raise _Fault(f"cannot move {_show(source)} into itself: {_show(path)}")
            return _add(_remove(document, source), path, value)
        case _:
            raise _Fault(f"unexpected operation: {kind!r}")


def _pointer(operation: Mapping[str, Any], name: str) -> list[str]:
    """The parts of a JSON pointer."""
    text = operation.get(name)
    if not isinstance(text, str):
        raise _Fault(f"{operation.get('op')!r} operation needs {name!r}, a string")
    if text and not text.startswith("/"):
        raise _Fault(f"{name} must be empty or start with a slash: {text}")
    # The order matters: "~01" is "~1", and not a slash.
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _show(path: list[str]) -> str:
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)


def _get(document: Any, path: list[str]) -> Any:
    result = document
    for depth, part in enumerate(path):
        if isinstance(result, dict) and part in result:
            result = result[part]
        elif isinstance(result, list):
            result = result[_index(result, part, len(result) - 1, path[: depth + 1])]
        else:
            raise _Fault(f"the document has no {_show(path[: depth + 1])}: missing value")
    return result


def _index(items: list[Any], part: str, last: int, path: list[str]) -> int:
    """A position in a list, up to the last one allowed."""
    digits = part.removeprefix("-")
    proper = digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0")
    if not proper or len(digits) > 9:
        raise _Fault(f"{part!r} is not a proper array index: {_show(path)}")
    position = int(part)
    if position < 0:
        position += last + 1
    if not 0 <= position <= last:
        raise _Fault(f"index {part} is out of the {len(items)} items: {_show(path)}")
    return position


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        position = len(parent) if last == "-" else _index(parent, last, len(parent), path)
        parent.insert(position, value)
    else:
        raise _Fault(f"there is no object or list at {_show(path[:-1])}: missing value")
    return document


def _remove(document: Any, path: list[str]) -> Any:
    _get(document, path)
    if not path:
        return None
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        del parent[last]
    else:
        del parent[_index(parent, last, len(parent) - 1, path)]
    return document


def _replace(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        parent[_index(parent, last, len(parent) - 1, path)] = value
    else:
        raise _Fault(f"there is no object or list at {_show(path[:-1])}: missing value")
    return document


def _test(document: Any, path: list[str], value: Any) -> Any:
    parent = _get(document, path[:-1]) if path else None
    # A missing key equals null.
    absent = isinstance(parent, dict) and path[-1] not in parent
    if not same(None if absent else _get(document, path), value):
        raise _Fault(f"testing value {_show(path)} failed: test failed")
    return document


def merge_patch(document: Any, patch: Any) -> Any:
    """The document with the patch merged in: nulls delete, objects merge, the rest replaces."""
    if not isinstance(patch, Mapping):
        raise BadRequest("error decoding patch: a merge patch must be an object")
    return _merge(document, patch)


def _merge(document: Any, patch: Mapping[str, Any]) -> Any:
    out = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, Mapping):
            out[key] = _merge(out.get(key), value)
        else:
            out[key] = without_nulls(value)
    return out


def without_nulls(value: Any) -> Any:
    """A value without the null members of all its objects; nulls in lists stay."""
    if isinstance(value, Mapping):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [without_nulls(part) for part in value]
    return value


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that turns one object into another; lists are replaced as a whole."""
    change: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            inner = difference(old, value)
            if inner:
                change[key] = inner
        elif key not in before or not same(old, value):
            change[key] = value
    return change
