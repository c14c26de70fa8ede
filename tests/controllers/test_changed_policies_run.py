"""Policies that change while services run, on a whole hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairway.api.meta import Condition
from fairway.clock import VirtualClock, timestamp
from fairway.store.embedded.store import EmbeddedStore
from tests.controllers.fleets import Fleet, running, summary_of
from tests.controllers.test_moves_run import (
    FLAVOR,
    apply,
    budget,
    cluster,
    policy,
    queue,
    service,
    watch,
)


@pytest.fixture
async def fleet(store: EmbeddedStore, clock: VirtualClock, tmp_path: Path):
    async with running(store, clock, tmp_path / "clusters") as found:
        yield found


def allowing(*names: str, **spec: Any) -> dict[str, Any]:
    rules = policy(enabled=False)
    rules["spec"] = {"selector": {"names": list(names)}, **spec}
    return rules


async def begin(fleet: Fleet, quota: int, chat: dict[str, Any]) -> None:
    await apply(fleet, FLAVOR, cluster("home", 4), cluster("cloud", 6), queue(quota))
    await apply(fleet, allowing("home"), chat)
    await fleet.until("chat", lambda item: item.status.pods.ready == 4, 120)
    assert summary_of(await fleet.workload("chat")) == "home (4)"


async def allowance(fleet: Fleet) -> Condition | None:
    conditions = (await fleet.workload("chat")).status.conditions
    return next((condition for condition in conditions if condition.type == "Allowed"), None)


@pytest.mark.parametrize(
    ("quota", "chat", "expected"),
    [
        pytest.param(
            16, service(4, disruption={"maxUnavailable": 0}), (4, 8, "cloud (4)"),
            id="with quota for both, none is missed",
        ),
        pytest.param(16, service(4), (3, 8, "cloud (4)"), id="without a budget, one is missing"),
        pytest.param(4, service(4), (3, 4, "cloud (4)"), id="without quota for both, one by one"),
        pytest.param(
            4, service(4, extra=(budget(maxUnavailable=2),)), (2, 4, "cloud (4)"),
            id="as many as the budget of its template says",
        ),
    ],
)  # fmt: skip
async def test_replicas_leave_a_cluster_that_their_policy_no_longer_allows_within_the_budget(
    fleet: Fleet, quota: int, chat: dict[str, Any], expected: tuple[int, int, str]
) -> None:
    await begin(fleet, quota, chat)
    await apply(fleet, allowing("cloud"))
    assert await watch(fleet, 300) == expected
    found = await fleet.workload("chat")
    assert (found.status.releasing, await allowance(fleet)) == ((), None)


async def test_replicas_stay_if_the_policy_says_so_and_a_condition_tells(fleet: Fleet) -> None:
    await begin(fleet, 16, service(4))
    await apply(fleet, allowing("cloud", whenNoLongerAllowed="Stay"))
    assert await watch(fleet, 120) == (4, 4, "home (4)")
    told = await allowance(fleet)
    assert told is not None
    assert (told.status, told.reason) == ("False", "NoLongerAllowed")
    assert "home" in told.message
    await apply(fleet, allowing("home", "cloud"))
    await fleet.clock.advance(5)
    assert await allowance(fleet) is None


async def test_a_queue_that_no_longer_allows_a_cluster_is_obeyed_alike(fleet: Fleet) -> None:
    await begin(fleet, 16, service(4, disruption={"maxUnavailable": 0}))
    await apply(fleet, allowing("home", "cloud"))
    fenced = queue(16)
    fenced["spec"]["clusters"] = {"names": ["cloud"]}
    await apply(fleet, fenced)
    assert await watch(fleet, 200) == (4, 8, "cloud (4)")


async def test_a_lowered_limit_is_worked_off_and_never_places_more_than_asked(
    fleet: Fleet,
) -> None:
    await begin(fleet, 16, service(4, disruption={"maxUnavailable": 0}))
    division = {"type": "DynamicWeight", "perClusterMax": 2}
    await apply(fleet, allowing("home", "cloud", division=division))
    assert await watch(fleet, 200) == (4, 6, "cloud (2), home (2)")


async def test_a_policy_that_allows_nothing_stops_nothing(fleet: Fleet) -> None:
    await begin(fleet, 16, service(4))
    await apply(fleet, allowing("nowhere"))
    assert await watch(fleet, 120) == (4, 4, "home (4)")
    assert await allowance(fleet) is not None


async def test_scale_in_after_a_partly_placed_scale_out_is_immediate(fleet: Fleet) -> None:
    await begin(fleet, 16, service(4))
    await fleet.change("chat", {"spec": {"replicas": 8}})
    await fleet.clock.advance(7)
    await fleet.change("chat", {"spec": {"replicas": 3}})
    await fleet.clock.advance(1)
    assert summary_of(await fleet.workload("chat")) == "home (3)"


EVENLY = {"division": {"type": "StaticWeight"}}


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        pytest.param(16, (4, 6, "cloud (2), home (2)"), id="with quota for both, none is missed"),
        pytest.param(4, (3, 4, "cloud (2), home (2)"), id="without it, one by one"),
    ],
)
async def test_a_request_divides_a_service_afresh_once(
    fleet: Fleet, quota: int, expected: tuple[int, int, str]
) -> None:
    await begin(fleet, quota, service(4))
    await apply(fleet, allowing("home", "cloud", **EVENLY))
    assert await watch(fleet, 60) == (4, 4, "home (4)"), "nothing moves by itself"
    asked_at = timestamp(fleet.clock.now())
    await fleet.change("chat", {"spec": {"rebalanceAt": asked_at}})
    assert await watch(fleet, 300) == expected
    found = await fleet.workload("chat")
    assert found.status.rebalanced_at is not None
    assert found.status.releasing == ()
    await fleet.change("chat", {"spec": {"rebalanceAt": asked_at}})
    await fleet.clock.advance(60)
    again = await fleet.workload("chat")
    assert again.status.rebalanced_at == found.status.rebalanced_at


async def test_a_policy_requests_it_for_its_services_at_a_time(fleet: Fleet) -> None:
    await begin(fleet, 16, service(4))
    at = timestamp(fleet.clock.now() + 60)
    await apply(fleet, allowing("home", "cloud", rebalanceAt=at, **EVENLY))
    assert await watch(fleet, 55) == (4, 4, "home (4)")
    assert await watch(fleet, 100) == (4, 6, "cloud (2), home (2)")
