"""Our rules for pods beside those of a real API server, with Pod Security admission on and off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from fairway.api.cluster import Permits
from fairway.api.errors import ApiError
from fairway.client import Scope
from fairway.kinds.pod_security import Allowed, pod_faults
from tests.contracts.drivers import config_map, seen, work
from tests.kubernetes.driving import KubernetesRig, driven, prepare
from tests.kubernetes.fixtures import AT_THE_EDGE
from tests.kubernetes.fleet import Fleet, Member
from tests.pod_cases import BEYOND, HARMLESS, Json, refused_pods

pytestmark = AT_THE_EDGE
STRICT, LENIENT = "with-pod-security", "without-pod-security"
LEVEL = "pod-security.kubernetes.io/enforce"
OURS = Allowed(permits=Permits(), accounts=frozenset({"default"}))


@pytest.fixture(scope="module")
def member(fleet: Fleet) -> Iterator[Member]:
    """A member with a namespace of which Pod Security checks the pods, and one without."""
    edge = fleet.members["edge"]
    for name, level in ((STRICT, "baseline"), (LENIENT, "privileged")):
        labels = {LEVEL: level, f"{LEVEL}-version": "v1.36"}
        edge.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}},
        )
        prepare(edge, name)
    yield edge
    edge.remove(f"namespace/{STRICT}", f"namespace/{LENIENT}")
    edge.prepared -= {STRICT, LENIENT}


@pytest.fixture
async def rig(member: Member) -> AsyncIterator[KubernetesRig]:
    async with driven(member) as opened:
        yield opened


def placed(body: Json, namespace: str, name: str = "trial") -> Json:
    return {**body, "metadata": {**body["metadata"], "namespace": namespace, "name": name}}


def answer(member: Member, body: Json, namespace: str) -> str:
    """Why the server does not take a pod; empty if it does."""
    try:
        member.client.create(placed(body, namespace), dry_run=True)
    except ApiError as fault:
        return str(fault)
    return ""


def test_baseline_refuses_what_we_refuse_and_accepts_what_we_accept(member: Member) -> None:
    refused = {sentence: body for sentence, (body, _) in refused_pods().items()}
    beyond = {sentence: body for sentence, (body, _) in BEYOND.items()}
    for sentence, body in {**refused, **HARMLESS, **beyond}.items():
        said = answer(member, body, STRICT)
        assert ("violates PodSecurity" in said) == (sentence in refused), f"{sentence}: {said}"
        assert said == "" or sentence in refused, f"{sentence}: {said}"
        assert bool(pod_faults(body, OURS)) == (sentence not in HARMLESS), sentence


async def test_nothing_of_a_refused_work_is_made_where_the_server_would_take_it(
    rig: KubernetesRig, member: Member
) -> None:
    bodies = [body for body, _ in (*refused_pods().values(), *BEYOND.values())]
    for number, body in enumerate(bodies):
        assert await asyncio.to_thread(answer, member, body, LENIENT) == ""
        settings = config_map(f"settings-{number}")
        settings["metadata"]["namespace"] = LENIENT
        bad = work(f"bad-{number}", settings, placed(body, LENIENT, f"bad-{number}"))
        await rig.driver.apply(bad)
        refused = seen(await rig.driver.observe(), bad)
        assert refused is not None
        assert set(refused.faults) == refused.refused == {1}
    scope = Scope(namespace=LENIENT)
    assert [
        item["metadata"]["name"] for item in member.client.list("pods", scope=scope).items
    ] == []
    made = [
        item["metadata"]["name"] for item in member.client.list("configmaps", scope=scope).items
    ]
    assert not [name for name in made if name.startswith("settings-")]


async def test_a_harmless_work_is_made_under_baseline(rig: KubernetesRig, member: Member) -> None:
    good = work("good", placed(HARMLESS["profiles"], STRICT, "good"))
    await rig.driver.apply(good)
    made = seen(await rig.driver.observe(), good)
    assert made is not None
    assert made.faults == {}
    assert member.client.get("pods", "good", namespace=STRICT)["metadata"]["name"] == "good"
