"""CostAccount: what was used on one day, by whom, and what it cost.

One object per day, written by the hub about every minute. Amounts are exact: GPU time in seconds,
and money in whole billionths plus a remainder, so that parts add up to the total under any
grouping.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

from msgspec import field

from fairway.api.amounts import Quantity
from fairway.api.doc import LabelValue, Reference, doc
from fairway.api.meta import VERSION, Object, Part

COSTS_GROUP = "costs.fairway.dev"
ROWS_MOST = 4000
Use = Literal["Used", "Idle", "Lent", "Lost"]


class CostRow(Part, frozen=True, kw_only=True):
    """One use of one kind of capacity, by one owner in one place."""

    use: Annotated[
        Use,
        doc(
            "Used: by a workload. Idle: unused in a cluster. Lent: lent by a queue and used by "
            "others. Lost: the part of the usage that was lost because its workload was "
            "preempted."
        ),
    ]
    namespace: Annotated[Reference, doc("Namespace of the workload.")] = ""
    team: Annotated[LabelValue, doc("Value of the workload's team label.", max_length=63)] = ""
    queue: Annotated[Reference, doc("Queue that was charged, or that lent the capacity.")] = ""
    workload: Annotated[
        Reference, doc("Name of the workload; empty: several workloads with little usage each.")
    ] = ""
    cluster: Annotated[Reference, doc("Name of the cluster.")] = ""
    flavor: Annotated[Reference, doc("Name of the flavor.")] = ""
    gpu_seconds: Annotated[Quantity, doc("GPU time, in seconds of one GPU.")] = Quantity(0)
    money: Annotated[Quantity, doc("Cost, in the fleet's currency.")] = Quantity(0)
    rest: Annotated[
        int,
        doc(
            "Remainder of the cost below a billionth: 3600000 parts make one billionth.", minimum=0
        ),
    ] = 0


class CostAccountSpec(Part, frozen=True, kw_only=True):
    """The account of one day."""

    until: Annotated[datetime, doc("Time up to which the day is accounted for.")]
    currency: Annotated[str, doc("Currency of all costs.", max_length=8)] = "USD"
    rows: Annotated[
        tuple[CostRow, ...],
        doc("Usage and its cost.", max_items=ROWS_MOST, list_type="atomic"),
    ] = ()


def _api_version() -> str:
    return f"{COSTS_GROUP}/{VERSION}"


class CostAccount(Object, frozen=True, kw_only=True):
    """What was used on one day, by whom, and what it cost; its name is the day, in UTC."""

    api_group: ClassVar[str] = COSTS_GROUP
    api_version: str = field(default_factory=_api_version)
    spec: Annotated[CostAccountSpec, doc("Account of the day.")]
