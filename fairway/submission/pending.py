"""How many workloads are pending in each queue, kept up to date by every write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from fairway.api.submission import user_of
from fairway.store.interface import Stored
from fairway.store.mirrors import Name

_PENDING = ("", "Waiting", "Held")


class _Metadata(msgspec.Struct):
    annotations: dict[str, str] = {}


class _Spec(msgspec.Struct):
    queue: str = ""


class _Status(msgspec.Struct):
    phase: str = ""
    queue: str = ""


class _Workload(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_read = msgspec.json.Decoder(_Workload).decode


class Pending:
    """Pending workloads by queue and user.

    The default queue of a namespace may change: a workload that names none is in `/NAMESPACE`.
    """

    def __init__(self) -> None:
        self._places: dict[Name, tuple[str, str]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    def note(self, name: Name, stored: Stored | None) -> None:
        """A workload was written, or removed."""
        before = self._places.pop(name, None)
        if before is not None:
            self._counts[before] -= 1
            if not self._counts[before]:
                del self._counts[before]
        if stored is None:
            return
        workload = _read(stored.raw)
        if workload.status.phase in _PENDING:
            queue = workload.spec.queue or workload.status.queue or f"/{name[0]}"
            place = (queue, user_of(workload.metadata.annotations))
            self._places[name] = place
            self._counts[place] += 1

    def queues(self) -> set[str]:
        """The queues that have pending workloads."""
        return {queue for queue, _ in self._counts}

    def count(self, queues: Iterable[str], user: str | None = None) -> int:
        """Pending workloads in some queues: of one user, or all."""
        wanted = set(queues)
        return sum(
            count
            for (queue, submitter), count in self._counts.items()
            if queue in wanted and user in (None, submitter)
        )
