"""Whatever a user writes, a rule's kind answers; `faults` tells what is wrong."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from fairway.kinds.rules import RuleKind
from tests.kinds.rules.test_built_in import KINDS, sample

ODD: tuple[Any, ...] = (None, [], {}, "odd", -1, True, [{}], {"a": None})


def places(value: Any, keys: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a value."""
    children: Any = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    for key, child in children:
        yield (*keys, key)
        yield from places(child, (*keys, key))


def damaged(manifest: dict[str, Any], keys: tuple[Any, ...], to: Any) -> dict[str, Any]:
    made = copy.deepcopy(manifest)
    value: Any = made
    for key in keys[:-1]:
        value = value[key]
    value[keys[-1]] = to
    return made


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_no_damage_to_a_manifest_makes_a_kind_stumble(kind: RuleKind) -> None:
    manifest = sample(kind.name)
    for keys in places(manifest["spec"], ("spec",)):
        for odd in ODD:
            one = damaged(manifest, keys, odd)
            before = copy.deepcopy(one)
            faults = kind.faults(one)
            assert all(isinstance(fault, str) and fault for fault in faults)
            sets = kind.pod_sets(one)
            assert faults or sets
            assert all(pod_set.count >= 0 for pod_set in sets)
            kind.templates(one)
            kind.dependencies(one)
            kind.read({**one, "status": odd})
            kind.merge(one, {"a": kind.play(one, [], now=0.0)})
            kind.release(kind.hold(kind.with_counts(one, {})))
            assert one == before


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_no_damage_to_a_status_makes_a_kind_stumble(kind: RuleKind) -> None:
    manifest = sample(kind.name)
    status = kind.play(manifest, [], now=0.0)
    for keys in places({"status": status}):
        for odd in ODD:
            found = damaged({**manifest, "status": status}, keys, odd)
            assert kind.read(found).ready >= 0
