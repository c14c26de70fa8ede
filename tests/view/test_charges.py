"""What pods are charged in quota, by the rules of the fleet."""

from __future__ import annotations

import pytest

from fairway.clock import timestamp
from fairway.core.explain.queue_status import standings
from fairway.core.snapshot import Snapshot
from fairway.view.objects import Objects
from tests.builders import GPU, H100, NOW, Plain, fleet, queue

HOUR = 3600


def remembered(name: str, amounts: dict[str, int]) -> Plain:
    """A queue that has borrowed this much over the last days."""
    made = queue(name, 0, parent="all")
    made["status"] = {"remembered": {"updatedAt": timestamp(NOW), "amounts": amounts}}
    return made


@pytest.mark.parametrize(
    ("weights", "share"), [({}, 500), ({GPU: "500m"}, 250), ({GPU: 0}, 0), ({"cpu": 9}, 500)]
)
def test_past_usage_counts_by_the_weight_of_its_resource(
    weights: dict[str, object], share: int
) -> None:
    settings = {"usageHalfLifeSeconds": HOUR, "resourceWeights": weights}
    objects = [H100, fleet(fairShare=settings), queue("all", 8), remembered("q", {GPU: 4})]
    found = standings(Snapshot(Objects.of(objects).facts(NOW)))
    (standing,) = [item for item in found if item.queue == "q"]
    assert standing.share == share
