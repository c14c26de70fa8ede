"""Which reports count: those whose name is that of a report of the cluster that they tell of.

An agent may write the reports of its own cluster, by their names. What stands in one is the agent's
word, the cluster included. So controllers do not see a report of any other cluster.
"""

from __future__ import annotations

import msgspec

from fairway.api.names import report_name
from fairway.store.interface import Stored
from fairway.store.mirrors import Name


class _Spec(msgspec.Struct):
    cluster: str
    chunk: int = 0


class _Report(msgspec.Struct):
    spec: _Spec


_decode = msgspec.json.Decoder(_Report).decode


def is_own_report(name: Name, stored: Stored) -> bool:
    """Whether a report tells of the cluster that it is named after."""
    try:
        spec = _decode(stored.raw).spec
    except msgspec.DecodeError:
        return False
    names = (report_name(spec.cluster, spec.chunk, is_difference=each) for each in (False, True))
    return name[1] in names
