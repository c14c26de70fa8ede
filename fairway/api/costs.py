"""CostAccount: what was used on one day, by whom, and what it cost.

One object a day, written by the hub every minute or so. Amounts are exact: GPU time in seconds, and
money in whole billionths with what is left of them, so that parts add up to the whole whatever they
are grouped by.
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
    """One sort of use of one kind of capacity, by whoever is named."""

    use: Annotated[
        Use,
        doc(
            "Used by a workload; Idle in a cluster; Lent by a queue to others, which use it; or "
            "Lost of what was used, since its workload was preempted."
        ),
    ]
    namespace: Annotated[Reference, doc("Namespace of the workload.")] = ""
    team: Annotated[
        LabelValue, doc("Value of the label by which workloads say their team.", max_length=63)
    ] = ""
    queue: Annotated[Reference, doc("Queue that was charged, or that lent.")] = ""
    workload: Annotated[
        Reference, doc("Name of the workload; empty: several, of which each had little.")
    ] = ""
    cluster: Annotated[Reference, doc("Where it was.")] = ""
    flavor: Annotated[Reference, doc("On which flavor.")] = ""
    gpu_seconds: Annotated[Quantity, doc("Seconds of one GPU.")] = Quantity(0)
    money: Annotated[Quantity, doc("What it cost, in the fleet's currency.")] = Quantity(0)
    rest: Annotated[
        int, doc("What it cost beyond that, in parts of a billionth: 3600000 make one.", minimum=0)
    ] = 0


class CostAccountSpec(Part, frozen=True, kw_only=True):
    """The account of a day."""

    until: Annotated[datetime, doc("Up to when the day is accounted for.")]
    currency: Annotated[str, doc("Currency of all money.", max_length=8)] = "USD"
    rows: Annotated[
        tuple[CostRow, ...],
        doc("Who used what.", max_items=ROWS_MOST, list_type="atomic"),
    ] = ()


def _api_version() -> str:
    return f"{COSTS_GROUP}/{VERSION}"


class CostAccount(Object, frozen=True, kw_only=True):
    """What was used on one day, by whom, and what it cost; its name is the day, in UTC."""

    api_group: ClassVar[str] = COSTS_GROUP
    api_version: str = field(default_factory=_api_version)
    spec: Annotated[CostAccountSpec, doc("The account.")]
