"""Plain order: clusters ranked only by how many workloads each has.

This is the default, and has to be fast: each claim changes it a little, and each decision asks for
the best cluster that has room. A `ClusterBalance` is updated claim by claim. Whole orders, and the
totals that a plan reports, are computed only when read, for the moment at which they were
requested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, overload

import numpy as np
import numpy.typing as npt

from fairway.core.clusters.ranking import Ranked, balance_of
from fairway.core.model import Score

_OUT: Final = np.iinfo(np.int64).max  # the key of an excluded cluster
_UNWELCOME: Final = 1 << 50  # more than any total times the number of clusters


class Order(Sequence[Ranked]):
    """Clusters ranked by plain scores, in arrays: an entry is created when it is read."""

    __slots__ = ("_order", "_totals", "_values", "_weights", "names")

    def __init__(
        self,
        names: tuple[str, ...],
        others: npt.NDArray[np.int64],
        scores: Sequence[Score],
        unwelcome: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """`names` are sorted; `others` and `unwelcome` have one entry per name."""
        self.names = names
        self._weights = [
            (score.name == "Balance", score.weight) for score in scores if score.weight
        ]
        self._values = balance_of(others)
        self._totals = self._values * sum(weight for counts, weight in self._weights if counts)
        keys = -self._totals
        # A stable sort leaves equals in the order of names.
        order = np.argsort(keys, kind="stable")
        if unwelcome is not None:
            order = np.lexsort((keys, unwelcome))
        self._order: npt.NDArray[np.int64] = order

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, at: int) -> Ranked: ...
    @overload
    def __getitem__(self, at: slice) -> list[Ranked]: ...
    def __getitem__(self, at: int | slice) -> Ranked | list[Ranked]:
        if isinstance(at, slice):
            return [self._rank(number) for number in self._order[at].tolist()]
        return self._rank(int(self._order[at]))

    def __iter__(self) -> Iterator[Ranked]:
        return map(self._rank, self._order.tolist())

    def where(self, fits: npt.NDArray[np.bool_]) -> Iterator[Ranked]:
        """The clusters in `fits`, best first; `fits` has one entry per name."""
        return map(self._rank, self._order[fits[self._order]].tolist())

    def totals(self) -> dict[str, int]:
        """The total of each cluster, best first."""
        names, totals = self.names, self._totals.tolist()
        return {names[at]: totals[at] for at in self._order.tolist()}

    def _rank(self, at: int) -> Ranked:
        value = int(self._values[at])
        values = tuple([value if counts else 0 for counts, _ in self._weights])
        return Ranked(self.names[at], int(self._totals[at]), values)


class Holds:
    """How many workloads each cluster has while a plan makes claims: now, and after any claim."""

    __slots__ = ("_first", "log", "now")

    def __init__(self, counts: npt.NDArray[np.int64]) -> None:
        self._first = counts.copy()
        self.now = counts
        self.log: list[int] = []  # the cluster of each claim, in order

    def add(self, place: int) -> None:
        """Counts one more workload in a cluster."""
        self.now[place] += 1
        self.log.append(place)

    def back_to(self, claims: int) -> None:
        """Takes back all but the first `claims` claims."""
        while len(self.log) > claims:
            self.now[self.log.pop()] -= 1

    def after(self, claims: int) -> npt.NDArray[np.int64]:
        """The counts after the first `claims` claims."""
        made = np.bincount(self.log[:claims], minlength=len(self._first))
        return self._first + made.astype(np.int64)


class ClusterBalance:
    """Some clusters ranked by plain scores, updated while claims are made.

    A claim changes the score of its cluster only, unless that cluster now has more workloads than
    any other: then all clusters are scored again.
    """

    __slots__ = (
        "_floor", "_holds", "_keys", "_most", "_others", "_position", "_seen", "_step",
        "_unwelcome", "names", "places", "scores",
    )  # fmt: skip

    def __init__(
        self,
        names: tuple[str, ...],
        places: npt.NDArray[np.int64],
        holds: Holds,
        scores: Sequence[Score],
        unwelcome: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """`names` are sorted; `places` has the position of each among all clusters."""
        self.names = names
        self.places = places
        self.scores = scores
        self._holds = holds
        self._unwelcome = unwelcome
        self._seen = 0
        self._most = 0
        self._position = {place: at for at, place in enumerate(places.tolist())}
        # One sort key per cluster, the least is best: unwelcome, then total, then name.
        self._step = len(names) * sum(score.weight for score in scores if score.name == "Balance")
        self._floor: npt.NDArray[np.int64] = np.arange(len(names), dtype=np.int64)
        if unwelcome is not None:
            self._floor += unwelcome * _UNWELCOME
        self._score_all()

    def standing(self) -> BalancedOrder:
        """The current order."""
        return BalancedOrder(self, len(self._holds.log))

    def order(self, claims: int) -> Order:
        """The order after the first `claims` claims."""
        others = self._holds.after(claims)[self.places]
        return Order(self.names, others, self.scores, self._unwelcome)

    def best(self, fits: npt.NDArray[np.bool_]) -> Iterator[str]:
        """The clusters in `fits`, best first; `fits` has one entry per cluster of the fleet."""
        self._catch_up()
        usable = fits if len(fits) == len(self.places) else fits.take(self.places)
        keys = np.where(usable, self._keys, _OUT)
        at = int(keys.argmin())
        while keys[at] != _OUT:
            yield self.names[at]
            keys[at] = _OUT
            at = int(keys.argmin())

    def _catch_up(self) -> None:
        log = self._holds.log
        for place in log[self._seen :]:
            at = self._position.get(place)
            if at is None:
                continue
            others = self._others[at] = self._others[at] + 1
            if others > self._most:
                self._score_all()
                return
            above = 50 * self._most - 100 * others
            value = abs(above) // self._most * (2 if above > 0 else -2)
            self._keys[at] = self._floor[at] - value * self._step
        self._seen = len(log)

    def _score_all(self) -> None:
        self._seen = len(self._holds.log)
        others = self._holds.now[self.places]
        self._others: list[int] = others.tolist()
        self._most = max(self._others, default=0)
        self._keys: npt.NDArray[np.int64] = self._floor - balance_of(others) * self._step


class BalancedOrder(Sequence[Ranked]):
    """The order of some clusters at one moment of a plan; computed when it is read."""

    __slots__ = ("_board", "_claims", "_order")

    def __init__(self, board: ClusterBalance, claims: int) -> None:
        self._board = board
        self._claims = claims
        self._order: Order | None = None

    @property
    def order(self) -> Order:
        if self._order is None:
            self._order = self._board.order(self._claims)
        return self._order

    def __len__(self) -> int:
        return len(self._board.names)

    @overload
    def __getitem__(self, at: int) -> Ranked: ...
    @overload
    def __getitem__(self, at: slice) -> list[Ranked]: ...
    def __getitem__(self, at: int | slice) -> Ranked | list[Ranked]:
        return self.order[at]

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.order)

    def best(self, fits: npt.NDArray[np.bool_]) -> Iterator[str]:
        """As `ClusterBalance.best`; valid only until the next claim."""
        return self._board.best(fits)


class Totals(Mapping[str, int]):
    """The total of each cluster, best first, computed when it is read."""

    __slots__ = ("_read", "_standing")

    def __init__(self, standing: BalancedOrder) -> None:
        self._standing = standing
        self._read: dict[str, int] | None = None

    @property
    def told(self) -> dict[str, int]:
        if self._read is None:
            self._read = self._standing.order.totals()
        return self._read

    def __getitem__(self, cluster: str) -> int:
        return self.told[cluster]

    def __iter__(self) -> Iterator[str]:
        return iter(self.told)

    def __len__(self) -> int:
        return len(self._standing)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[type[dict[str, int]], tuple[dict[str, int]]]:
        """Pickles as a plain dict."""
        return (dict, (self.told,))
