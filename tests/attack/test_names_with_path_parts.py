"""Names of objects become parts of paths: those of an API, and of folders on a machine.

The name `..` once made an agent write to what holds the object, as clients resolve such steps; and
pods of a local cluster left their folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairway.api.cluster import Permits
from fairway.api.errors import BadRequest
from fairway.kinds import permitted
from fairway.kinds.registry import built_in
from fairway.kubeapi.paths import path_of
from fairway.store.keys import PODS
from tests.agent.local.machines import machine, phase_of
from tests.contracts.drivers import job, work

Json = dict[str, Any]
NAMES = ["..", ".", "../../secrets/key", "a/b", "a%2Fb", "/etc", "a\n", "-a", "A", "a" * 254, ["a"]]


def named(name: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_hub_and_agent_refuse_a_name_that_is_none(name: Any) -> None:
    said = f"metadata.name: {name!r} is not a name of Kubernetes"
    assert permitted.faults([named(name)], "team") == [f"spec.template.manifests[0].{said}"]
    assert permitted.faults_in([named(name)], Permits(), built_in().of) == {0: [said]}


@pytest.mark.parametrize("name", ["a", "a.b-c", "0", "a" * 253], ids=len)
def test_names_of_kubernetes_are_taken(name: str) -> None:
    assert permitted.faults([named(name)], "team") == []


@pytest.mark.parametrize("step", [".", ".."])
def test_no_call_leaves_the_collection_that_it_is_for(step: str) -> None:
    with pytest.raises(BadRequest):
        path_of(PODS, step, "team")
    with pytest.raises(BadRequest):
        path_of(PODS, "a", step)


@pytest.mark.parametrize("desired", ["Run", "Reserve"])
@pytest.mark.parametrize("name", ["../../../../../outside", "/outside"])
async def test_a_pod_of_a_local_cluster_stays_in_its_folder(
    tmp_path: Path, name: str, desired: str
) -> None:
    inner = job("driver", seconds=0.05)["spec"]
    roles = [{"name": name, "template": {"spec": inner}}]
    several = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"replicatedJobs": roles},
    }
    async with machine(tmp_path) as rig:
        before = sorted(path.name for path in tmp_path.iterdir())
        bad = work("bad", several, desired=desired)
        await rig.driver.apply(bad)
        seen = (await rig.driver.observe()).works.get(bad.metadata.name)
        assert seen is None or seen.pods == ()
        if desired == "Run":
            assert seen is not None
            assert "is not the name of a pod" in seen.faults[0]
        assert sorted(path.name for path in tmp_path.iterdir()) == before
        good = work("good", job("good", seconds=0.05))
        await rig.driver.apply(good)
        await rig.until(lambda item: phase_of(item, good) == "Succeeded", "another that runs")
