"""HorizontalPodAutoscalers on an embedded hub: served, and honoured over all clusters."""

from __future__ import annotations

from typing import Any

import pytest

from fairway.api import codec
from fairway.api.errors import Invalid, NotFound
from fairway.store.interface import EVERYTHING, Patch, ResourceKey
from fairway.store.keys import AUTOSCALERS
from tests.controllers.dials import Dials
from tests.controllers.fleets import Fleet
from tests.controllers.test_autoscaling_run import (
    DEPLOYMENTS,
    NATIVE,
    QUEUE,
    USER,
    autoscaler,
    condition,
    dials,
    fleet,
    meter,
    served,
)

__all__ = ["dials", "fleet", "meter"]  # fixtures
HORIZONTALS = ResourceKey("autoscaling", "v2", "horizontalpodautoscalers")
EVENTS = ResourceKey("", "v1", "events")


def horizontal(**spec: Any) -> str:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"}
    whole = {"scaleTargetRef": target, "maxReplicas": 12, "metrics": [QUEUE], **spec}
    return codec.to_yaml(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "chat", "namespace": "default"},
            "spec": whole,
        }
    )


async def body_of(fleet: Fleet) -> dict[str, Any]:
    body: dict[str, Any] = (await fleet.store.get(HORIZONTALS, "chat", "default")).object()
    return body


async def replicas(fleet: Fleet) -> int:
    body = (await fleet.store.get(DEPLOYMENTS, "chat", "default")).object()
    return int(body["spec"]["replicas"])


def told(body: dict[str, Any]) -> dict[str, str]:
    return {item["type"]: item["status"] for item in body["status"]["conditions"]}


async def test_a_service_follows_its_load_and_the_status_is_written_back(
    fleet: Fleet, dials: Dials
) -> None:
    dials.set["waiting"] = 100.0
    await fleet.apply(NATIVE)
    await fleet.clock.advance(1)
    await served(fleet, 2, "deployment-chat")
    await fleet.apply(horizontal())
    await fleet.clock.advance(60)
    assert await replicas(fleet) == 10
    await served(fleet, 10, "deployment-chat")
    assert (await fleet.pods("hangzhou"), await fleet.pods("shanghai")) == (8, 2)
    await fleet.clock.advance(30)
    body = await body_of(fleet)
    status = body["status"]
    assert (status["currentReplicas"], status["desiredReplicas"]) == (10, 10)
    assert status["lastScaleTime"]
    assert told(body) == {"AbleToScale": "True", "ScalingActive": "True", "ScalingLimited": "False"}
    assert status["currentMetrics"] == [
        {
            "type": "External",
            "external": {"metric": {"name": "waiting"}, "current": {"averageValue": "10"}},
        }
    ]


async def test_limits_and_behavior_are_honoured_and_changes_take_effect(
    fleet: Fleet, dials: Dials
) -> None:
    dials.set["waiting"] = 100.0
    await fleet.apply(NATIVE)
    await fleet.clock.advance(1)
    await served(fleet, 2, "deployment-chat")
    policies = [{"type": "Pods", "value": 1, "periodSeconds": 60}]
    await fleet.apply(horizontal(behavior={"scaleUp": {"policies": policies}}))
    await fleet.clock.advance(30)
    assert await replicas(fleet) == 3
    assert told(await body_of(fleet))["ScalingLimited"] == "True"
    await fleet.apply(horizontal(maxReplicas=4))
    await fleet.clock.advance(30)
    assert await replicas(fleet) == 4
    await fleet.apply(horizontal(minReplicas=6))
    dials.set["waiting"] = 0.0
    await fleet.clock.advance(400)
    assert await replicas(fleet) == 6


async def test_it_ends_with_its_object(fleet: Fleet, dials: Dials) -> None:
    await fleet.apply(NATIVE)
    await fleet.apply(horizontal())
    await fleet.clock.advance(5)
    await fleet.store.get(AUTOSCALERS, "hpa-chat", "default")
    await fleet.store.delete(AUTOSCALERS, "hpa-chat", namespace="default", write=USER)
    await fleet.clock.advance(5)
    await fleet.store.get(AUTOSCALERS, "hpa-chat", "default")  # it is made again
    await fleet.store.delete(HORIZONTALS, "chat", namespace="default", write=USER)
    await fleet.clock.advance(5)
    with pytest.raises(NotFound):
        await fleet.store.get(AUTOSCALERS, "hpa-chat", "default")


async def test_a_target_without_a_queue_is_not_scaled_and_its_status_says_why(
    fleet: Fleet, dials: Dials
) -> None:
    await fleet.apply(NATIVE.replace("fairway.dev/queue: serving", "app: chat"))
    await fleet.apply(horizontal())
    await fleet.clock.advance(30)
    (able,) = (await body_of(fleet))["status"]["conditions"]
    assert (able["type"], able["status"], able["reason"]) == (
        "AbleToScale",
        "False",
        "TargetNotFound",
    )


async def test_of_two_autoscalers_the_older_one_scales_unless_the_other_takes_over(
    fleet: Fleet, dials: Dials
) -> None:
    dials.set["waiting"] = 40.0
    await fleet.apply(NATIVE)
    await fleet.clock.advance(1)
    await served(fleet, 2, "deployment-chat")
    await fleet.apply(horizontal())
    await fleet.clock.advance(5)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"}
    await fleet.apply(autoscaler("own", target=target, maxReplicas=3))
    await fleet.clock.advance(60)
    assert await replicas(fleet) == 4
    assert await condition(fleet, "AbleToScale", "own") == "False OtherAutoscaler"
    await fleet.apply(autoscaler("own", target=target, maxReplicas=3, takeOver=True))
    await fleet.clock.advance(90)
    assert await replicas(fleet) == 3
    with pytest.raises(NotFound):
        await body_of(fleet)


async def test_a_name_that_is_taken_is_left_alone_and_an_event_says_so(
    fleet: Fleet, dials: Dials
) -> None:
    await fleet.apply(autoscaler("hpa-chat"))
    await fleet.apply(horizontal())
    await fleet.clock.advance(5)
    events = [item.object() for item in (await fleet.store.list(EVENTS, EVERYTHING)).items]
    assert ("HorizontalPodAutoscaler", "NameTaken") in [
        (item["involvedObject"]["kind"], item["reason"]) for item in events
    ]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"minReplicas": 0}, "spec.minReplicas"),
        ({"minReplicas": 9, "maxReplicas": 3}, "spec.minReplicas"),
        ({"scaleTargetRef": {"kind": "Deployment", "name": "A b"}}, "spec.scaleTargetRef.name"),
        (
            {"metrics": [{**QUEUE, "external": {**QUEUE["external"], "metric": {"name": "a/b"}}}]},
            "spec.metrics[0].external.metric.name",
        ),
        ({"metrics": [{"type": "Pods", "external": QUEUE["external"]}]}, "spec.metrics[0].pods"),
        (
            {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 4000}}},
            "spec.behavior.scaleDown.stabilizationWindowSeconds",
        ),
    ],
)
async def test_what_cannot_be_honoured_is_refused_with_its_path(
    spec: dict[str, Any], path: str, fleet: Fleet
) -> None:
    with pytest.raises(Invalid) as refused:
        await fleet.apply(horizontal(**spec))
    assert path in {cause["field"] for cause in refused.value.details["causes"]}


async def test_what_is_left_out_is_as_in_kubernetes(fleet: Fleet) -> None:
    await fleet.apply(horizontal(metrics=[], behavior={"scaleUp": {"selectPolicy": "Min"}}))
    spec = (await body_of(fleet))["spec"]
    assert spec["minReplicas"] == 1
    assert spec["metrics"][0]["resource"]["target"]["averageUtilization"] == 80
    up, down = spec["behavior"]["scaleUp"], spec["behavior"]["scaleDown"]
    assert (up["selectPolicy"], len(up["policies"]), up["stabilizationWindowSeconds"]) == (
        "Min",
        2,
        0,
    )
    assert (down["selectPolicy"], len(down["policies"])) == ("Max", 1)
    merge = Patch(type="merge", body={"spec": {"maxReplicas": 5}})
    await fleet.store.patch(HORIZONTALS, "chat", merge, namespace="default", write=USER)
