"""A real API server takes every pod status from which the causes of failures are told."""

from __future__ import annotations

import copy

import pytest

from fairway.client import Client, PatchType
from tests.controllers.test_causes import SAMPLES, sample
from tests.kubernetes import control_plane

pytestmark = pytest.mark.real


@pytest.mark.parametrize("name", [other.stem for other in SAMPLES])
def test_the_status_of_a_cause_is_well_formed(real: control_plane.ControlPlane, name: str) -> None:
    pod = copy.deepcopy(sample(name)["pod"])
    status = pod.pop("status")
    # Without its labels, it is nobody's workload.
    pod["metadata"] = {"namespace": "default", "name": f"cause-{name}"}
    # No node is there; what a scheduler does is not asked here.
    pod["spec"].pop("nodeName", None)
    with Client.connect(str(real.kubeconfig)) as client:
        client.create(pod)
        taken = client.patch(
            "pods", f"cause-{name}", {"status": status}, type=PatchType.STRATEGIC,
            namespace="default", subresource="status",
        )["status"]  # fmt: skip
    told = {key: value for key, value in status.items() if key != "conditions"}
    assert {key: taken.get(key) for key in told} == told
    kinds = {condition["type"]: condition.get("reason") for condition in taken["conditions"]}
    assert kinds.items() >= {
        (condition["type"], condition.get("reason")) for condition in status["conditions"]
    }
