"""Which pod a name means, though controllers add to names what nobody can know before."""

from __future__ import annotations

import pytest

from fairway.agent.drivers.interface import PodSeen
from fairway.agent.drivers.kubernetes.pods import NO_USE, OwnPod
from fairway.agent.drivers.kubernetes.streams import pods_called

JOB = ("train-0-x7k2p", "train-1-9bcdf", "train-10-aaaaa")
DEPLOYMENT = ("web-7d9c5b8f6c-2xkzq", "web-7d9c5b8f6c-9mmfd")


def pod(name: str) -> OwnPod:
    seen = PodSeen(name=name, pod_set="pod", attempt=1, phase="Ready")
    return OwnPod(seen=seen, work="w", namespace="team", uid="1", use=NO_USE, containers=("main",))


@pytest.mark.parametrize(
    ("names", "name", "meant"),
    [
        pytest.param(JOB, "", JOB, id="none means all of them"),
        pytest.param(JOB, "train-1-9bcdf", JOB[1:2], id="a whole name means that one"),
        pytest.param(JOB, "train-1", JOB[1:2], id="an index of a job means its pod"),
        pytest.param(JOB, "train-2", (), id="an index that has no pod means none"),
        pytest.param(DEPLOYMENT, "web-1", DEPLOYMENT[1:], id="a number means that replica"),
        pytest.param(DEPLOYMENT, "web-2", (), id="a number past the last means none"),
        pytest.param(DEPLOYMENT, "db-0", (), id="another name means none"),
        pytest.param(("train-worker-0",), "train-worker-0", ("train-worker-0",), id="as it is"),
    ],
)
def test_a_name_means(names: tuple[str, ...], name: str, meant: tuple[str, ...]) -> None:
    found = pods_called([pod(other) for other in names], name)
    assert tuple(item.seen.name for item in found) == meant
