"""Whether two JSON values are the same.

In Python `True == 1`; in JSON and Kubernetes it is not. Code that compares values of objects to
find out what changed must use `same`, or a change of `1` to `true` is lost. Numbers are compared by
value: `1` and `1.0` are the same, and a kube-apiserver writes them the same.
"""

from __future__ import annotations

from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are the same; unlike in Python, true is not 1."""
    if left is right:
        return True
    if left != right:
        return False
    kind = type(left)
    if kind is str:
        return True
    if kind is dict:
        # Most of a rewritten object is unchanged and the identical value, not a copy.
        for key, value in left.items():
            other = right[key]
            if value is not other and type(value) is not str and not _has_same_types(value, other):
                return False
        return True
    return _has_same_types(left, right)


def _has_same_types(left: Any, right: Any) -> bool:
    """Whether two values that are equal in Python also have the same JSON types."""
    kind = type(left)
    if kind is dict or kind is list:
        # Mostly they encode to the same text, and encoding is faster than a walk.
        return _encode(left) == _encode(right) or _has_same_leaves(left, right)
    return _has_same_leaves(left, right)


def _has_same_leaves(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return all(_has_same_leaves(value, right[key]) for key, value in left.items())
    if isinstance(left, list | tuple):
        return all(map(_has_same_leaves, left, right))
    return isinstance(left, bool) is isinstance(right, bool)
