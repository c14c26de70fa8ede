"""Whether two JSON values are the same.

Python says that `True == 1`; JSON and Kubernetes do not. Whatever compares values of objects, to
find out what changed or whether anything did, asks `same`, or a change of `1` to `true` is lost.
Numbers are compared by value: `1` and `1.0` are the same, as a kube-apiserver writes them too.
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
        # Much of an object that is written again is what it was, and not a copy of that.
        for key, value in left.items():
            other = right[key]
            if value is not other and type(value) is not str and not _has_same_types(value, other):
                return False
        return True
    return _has_same_types(left, right)


def _has_same_types(left: Any, right: Any) -> bool:
    """Whether no boolean meets a number in two values that are equal in Python."""
    kind = type(left)
    if kind is dict or kind is list:
        # They are mostly written alike, which the encoder finds out sooner than a walk.
        return _encode(left) == _encode(right) or _has_same_leaves(left, right)
    return _has_same_leaves(left, right)


def _has_same_leaves(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return all(_has_same_leaves(value, right[key]) for key, value in left.items())
    if isinstance(left, list | tuple):
        return all(map(_has_same_leaves, left, right))
    return isinstance(left, bool) is isinstance(right, bool)
