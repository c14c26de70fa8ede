"""ResourceClaims and their templates: their defaults, and their checks.

Claims are allocated in the clusters, never on the hub: here they only say what pods ask for.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairway.api.errors import FieldError, duplicate, invalid, required_field
from fairway.resources.builtin.parts import fill_empty, make_object, objects, read, text, with_paths
from fairway.resources.builtin.workload_checks import IMMUTABLE
from fairway.schema.node import JsonObject

_EXACT = "ExactCount"
_MODES = (_EXACT, "All")


def claim(obj: JsonObject, old: JsonObject | None) -> None:
    _prepare(make_object(obj, "spec"))
    if old is None:
        obj["status"] = {}


def template(obj: JsonObject, old: JsonObject | None) -> None:
    _prepare(make_object(make_object(obj, "spec"), "spec"))


def _prepare(spec: JsonObject) -> None:
    """Sets the defaults of Kubernetes: exactly one device."""
    for request in objects(read(spec, "devices"), "requests"):
        asked = objects(request, "firstAvailable")
        if isinstance(request.get("exactly"), dict):
            asked = [*asked, request["exactly"]]
        for part in asked:
            fill_empty(part, {"allocationMode": _EXACT})
            if part["allocationMode"] == _EXACT:
                fill_empty(part, {"count": 1})


def claim_faults(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    return _faults(obj, old, read(obj, "spec"), "spec")


def template_faults(obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    return _faults(obj, old, read(obj, "spec", "spec"), "spec.spec")


def _faults(
    obj: JsonObject, old: JsonObject | None, spec: JsonObject, path: str
) -> list[FieldError]:
    if old is not None:
        is_same = read(obj, "spec") == read(old, "spec")
        return [] if is_same else [invalid("spec", read(obj, "spec"), IMMUTABLE)]
    names: set[str] = set()
    faults: list[FieldError] = []
    for where, request in with_paths(read(spec, "devices"), "requests", f"{path}.devices"):
        name = text(request, "name")
        if name in names:
            faults.append(duplicate(f"{where}.name", name))
        names.add(name)
        faults.extend(_request_faults(request, where))
    return faults


def _request_faults(request: JsonObject, path: str) -> Iterator[FieldError]:
    has_exactly, several = "exactly" in request, objects(request, "firstAvailable")
    if has_exactly and several:
        message = "exactly one of `exactly` or `firstAvailable` is required"
        yield invalid(path, request, f"{message}, but multiple fields are set")
    elif not has_exactly and not several:
        yield required_field(path, "exactly one of `exactly` or `firstAvailable` is required")
    if has_exactly:
        yield from _part_faults(read(request, "exactly"), f"{path}.exactly")
    for where, part in with_paths(request, "firstAvailable", path):
        yield from _part_faults(part, where)


def _part_faults(part: JsonObject, path: str) -> Iterator[FieldError]:
    if not text(part, "deviceClassName"):
        yield required_field(f"{path}.deviceClassName")
    mode, count = text(part, "allocationMode"), part.get("count", 0)
    if mode not in _MODES:
        yield invalid(f"{path}.allocationMode", mode, f"must be one of {', '.join(_MODES)}")
    if mode == "All" and count:
        yield invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    if mode == _EXACT and isinstance(count, int) and count <= 0:
        yield invalid(f"{path}.count", count, "must be greater than zero")
