"""Reports: the accounts of some days, grouped by queue, team, cluster and so on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fairway.api.amounts import NANO, Quantity
from fairway.api.costs import CostRow, Use
from fairway.core.costs.accounts import HOUR, Key, Sum

By = Literal["queue", "namespace", "team", "workload", "cluster", "flavor"]
BY: tuple[By, ...] = ("queue", "namespace", "team", "workload", "cluster", "flavor")
NOBODY = "-"
_GPU_TIME_NANOS = NANO // 1_000_000  # of GPU seconds, in a thousandth x millisecond


@dataclass(slots=True)
class Line:
    """One line of a report."""

    name: str
    sums: dict[Use, Sum] = field(default_factory=dict)

    def add(self, use: Use, more: Sum) -> None:
        self.sums[use] = self.sums.get(use, Sum()).plus(more)

    def of(self, use: Use) -> Sum:
        return self.sums.get(use, Sum())

    def render(self) -> dict[str, Any]:
        """The line for programs: hours and money as decimal strings, rounded once."""
        rendered: dict[str, Any] = {"name": self.name}
        for use in ("Used", "Lost", "Lent", "Idle"):
            total, word = self.of(use), use.lower()
            rendered[f"{word}GpuHours"] = hours(total)
            if use != "Lent":  # the queue that uses it pays
                rendered[f"{word}Cost"] = money(total)
        return rendered


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    by: By
    lines: tuple[Line, ...]
    total: Line


def report(rows: Iterable[CostRow], by: By) -> Report:
    """Rows of any number of days, grouped; the most expensive first, those without a name last."""
    lines: dict[str, Line] = {}
    total = Line("total")
    for row in rows:
        other, name = sum_of(row), name_of(row, by)
        lines.setdefault(name, Line(name)).add(row.use, other)
        total.add(row.use, other)
    ordered = sorted(
        lines.values(),
        key=lambda line: (
            line.name == NOBODY,
            -line.of("Used").money,
            -line.of("Used").gpu_time,
            line.name,
        ),
    )
    return Report(by=by, lines=tuple(ordered), total=total)


def name_of(row: CostRow, by: By) -> str:
    if by == "workload":
        return f"{row.namespace}/{row.workload}" if row.workload else NOBODY
    result: str = getattr(row, by)
    return result or NOBODY


def row_of(key: Key, total: Sum) -> CostRow:
    """A sum as a row to store."""
    nanos, rest = divmod(total.money, HOUR)
    return CostRow(
        use=key.use,
        namespace=key.namespace,
        team=key.team,
        queue=key.queue,
        workload=key.workload,
        cluster=key.cluster,
        flavor=key.flavor,
        gpu_seconds=Quantity(total.gpu_time * _GPU_TIME_NANOS),
        money=Quantity(nanos),
        rest=rest,
    )


def sum_of(row: CostRow) -> Sum:
    """The sum of a stored row, exactly."""
    return Sum(
        gpu_time=row.gpu_seconds.nanos // _GPU_TIME_NANOS,
        money=row.money.nanos * HOUR + row.rest,
    )


def key_of(row: CostRow) -> Key:
    return Key(
        use=row.use,
        namespace=row.namespace,
        team=row.team,
        queue=row.queue,
        workload=row.workload,
        cluster=row.cluster,
        flavor=row.flavor,
    )


def sums_of(rows: Iterable[CostRow]) -> Mapping[Key, Sum]:
    sums: dict[Key, Sum] = {}
    for row in rows:
        key = key_of(row)
        sums[key] = sums.get(key, Sum()).plus(sum_of(row))
    return sums


def hours(total: Sum) -> str:
    """GPU-hours, with two decimals."""
    return _round(total.gpu_time, 1000 * HOUR)


def money(total: Sum) -> str:
    """Money, with two decimals."""
    return _round(total.money, NANO * HOUR)


def _round(amount: int, unit: int) -> str:
    """An amount in units with two decimals, rounded half up: the only place where sums are."""
    hundredths = (amount * 200 + unit) // (2 * unit)
    return f"{hundredths // 100}.{hundredths % 100:02d}"
