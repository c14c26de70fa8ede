"""What each batch covers, as a table."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from fairway.api.rollout import RolloutStrategy
from fairway.serving.rollout.batches import batches_of
from fairway.serving.rollout.case import ClusterPart

PLACES = (
    ClusterPart(cluster="beijing", replicas=10, group="home", rank=0),
    ClusterPart(cluster="hangzhou", replicas=6, group="cloud", rank=1),
    ClusterPart(cluster="shanghai", replicas=4, group="cloud", rank=1),
)
ALL = {"beijing": None, "hangzhou": None, "shanghai": None}
CLOUD = {"hangzhou": None, "shanghai": None}

TABLE: dict[str, tuple[dict[str, Any], bool, list[dict[str, int | None]]]] = {
    "nothing asked for is one batch": ({}, False, [ALL]),
    "a canary takes whole clusters, the smallest first": (
        {"canary": {"percent": 10}}, False, [{"shanghai": None}, ALL]),
    "a canary takes no more than it must where clusters are divisible": (
        {"canary": {"percent": 10}}, True, [{"shanghai": 2}, ALL]),
    "a canary is at least one replica": (
        {"canary": {"percent": 1}}, True, [{"shanghai": 1}, ALL]),
    "a canary comes from the clusters that are named": (
        {"canary": {"percent": 10, "clusters": ["beijing"]}}, True, [{"beijing": 2}, ALL]),
    "a canary of clusters that are not there is nothing": (
        {"canary": {"percent": 10, "clusters": ["nowhere"]}}, True, [{}, ALL]),
    "groups go one after another, in the policy's order": (
        {"byGroup": True}, False, [{"beijing": None}, ALL]),
    "named clusters and groups, and the rest last": (
        {"batches": [{"clusters": ["shanghai"]}, {"group": "cloud"}]}, False,
        [{"shanghai": None}, CLOUD, ALL]),
    "the last batch that names all is the last": (
        {"batches": [{"group": "cloud"}, {"group": "home"}]}, False, [CLOUD, ALL]),
    "a percentage takes whole clusters until it is reached": (
        {"batches": [{"percent": 25}, {"percent": 60}]}, False,
        [{"beijing": None}, {"beijing": None, "hangzhou": None}, ALL]),
    "a percentage is exact where clusters are divisible": (
        {"batches": [{"percent": 25}, {"percent": 60}]}, True,
        [{"beijing": 5}, {"beijing": None, "hangzhou": 2}, ALL]),
    "a percentage counts what a canary has already": (
        {"canary": {"percent": 10}, "batches": [{"percent": 50}]}, True,
        [{"shanghai": 2}, {"shanghai": 2, "beijing": 8}, ALL]),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "is_divisible", "expected"), TABLE.values(), ids=TABLE)
def test_batches(
    asked: dict[str, Any], is_divisible: bool, expected: list[dict[str, int | None]]
) -> None:
    strategy = convert(asked, RolloutStrategy)
    assert batches_of(strategy, PLACES, is_divisible=is_divisible) == expected


@pytest.mark.parametrize("is_divisible", [False, True])
def test_the_order_of_clusters_is_of_no_account(is_divisible: bool) -> None:
    strategy = convert({"canary": {"percent": 30}, "batches": [{"percent": 60}]}, RolloutStrategy)
    one = batches_of(strategy, PLACES, is_divisible=is_divisible)
    assert batches_of(strategy, PLACES[::-1], is_divisible=is_divisible) == one
