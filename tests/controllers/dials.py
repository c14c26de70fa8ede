"""A source of numbers that a test sets by hand, as somebody turns a dial."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairway.metrics.interface import Address, PodUsage, Refused, Sample, Source, Unreachable


@dataclass
class Dials:
    """Samples by a word that a query holds; what is set to None cannot be reached."""

    set: dict[str, float | list[tuple[dict[str, str], float]] | None] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    addresses: list[Address] = field(default_factory=list)

    def at(self, address: Address) -> Source:
        self.addresses.append(address)
        return self

    async def vector(self, query: str, at: float | None = None) -> tuple[Sample, ...]:
        self.asked.append(query)
        for word, value in self.set.items():
            if word in query:
                match value:
                    case None:
                        raise Unreachable("nobody answers")
                    case list():
                        rows = [(labels, number) for labels, number in value]
                    case number:
                        rows = [({}, number)]
                return tuple(Sample(value=row, at=at or 0.0, labels=labels) for labels, row in rows)
        return ()


@dataclass
class Meter:
    """What pods use, by cluster; a cluster that is not set cannot be asked."""

    by_cluster: dict[str, tuple[PodUsage, ...]] = field(default_factory=dict)

    async def of_work(self, cluster: str, work: str) -> tuple[PodUsage, ...]:
        if cluster not in self.by_cluster:
            raise Refused("there is no metrics API")
        return self.by_cluster[cluster]
