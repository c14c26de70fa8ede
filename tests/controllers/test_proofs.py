"""Which works a hub believes: those that it decided, by their proof or by what it still knows."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from fairway.api.meta import ObjectMeta, WorkloadReference
from fairway.api.names import PLACEMENT, PROOF, work_namespace
from fairway.api.work import Work, WorkSpec
from fairway.api.workload import Workload
from fairway.controllers.adoption import is_believed
from fairway.controllers.proofs import Proofs
from tests.controllers.lives import claim, placement, workload

PROOFS, OTHERS = Proofs(b"of the hub"), Proofs(b"of another hub")
HELD = {"phase": "Running", "claim": claim(placement("a", attempt=2), attempt=2)}
LEFT = {"phase": "Stopping", "releasing": [placement("a", attempt=2)]}
PAST = {"phase": "Waiting", "history": [{"attempt": 2, "clusters": ["a"]}]}


def work(
    cluster: str = "a", *, attempt: int = 2, uid: str = "u-1", proofs: Proofs | None = None
) -> Work:
    reference = WorkloadReference(namespace="team", name="train", uid=uid)
    made = Work(
        metadata=ObjectMeta(
            name="team.train",
            namespace=work_namespace(cluster),
            annotations={PLACEMENT: f'{{"cluster": "{cluster}"}}'},
        ),
        spec=WorkSpec(cluster=cluster, workload=reference, attempt=attempt, term=1),
    )
    return signed(made, proofs) if proofs is not None else made


def signed(made: Work, proofs: Proofs) -> Work:
    annotations = {**made.metadata.annotations, PROOF: proofs.of(made)}
    return replace(made, metadata=replace(made.metadata, annotations=annotations))


def changed(made: Work, **spec: Any) -> Work:
    return replace(made, spec=replace(made.spec, **spec))


PROVEN = work(proofs=PROOFS)
ANOTHER = WorkloadReference(namespace="team", name="other", uid="u-1")
NOTED = {**PROVEN.metadata.annotations, PLACEMENT: '{"cluster": "a", "replicas": 9}'}


@pytest.mark.parametrize(
    ("case", "made", "expected"),
    [
        ("with its proof", PROVEN, True),
        ("in a later term, which no proof covers", changed(PROVEN, term=9), True),
        ("without a proof", work(), False),
        ("with the proof of another hub", work(proofs=OTHERS), False),
        ("as a later attempt", changed(PROVEN, attempt=3), False),
        ("for another workload", changed(PROVEN, workload=ANOTHER), False),
        ("as if for another cluster", changed(PROVEN, cluster="b"), False),
        (
            "with another placement",
            replace(PROVEN, metadata=replace(PROVEN.metadata, annotations=NOTED)),
            False,
        ),
        (
            "in the namespace of another cluster",
            replace(PROVEN, metadata=replace(PROVEN.metadata, namespace=work_namespace("b"))),
            False,
        ),
    ],
)
def test_a_hub_that_has_forgotten_a_decision_believes_its_proof(
    case: str, made: Work, expected: bool
) -> None:
    assert is_believed(made, None, PROOFS) is expected, case
    assert is_believed(made, workload({"phase": "Waiting"}), PROOFS) is expected, case


@pytest.mark.parametrize("status", [HELD, LEFT, PAST], ids=["held", "leaving", "over"])
@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (work(), True),
        (work(uid=""), True),  # rebuilt from its objects
        (work(uid="u-9"), False),
        (work(attempt=3), False),
        (work("b"), False),
    ],
    ids=["its work", "a rebuilt one", "an earlier workload's", "a later attempt", "elsewhere"],
)
def test_a_work_of_an_earlier_version_is_known_by_its_workload(
    status: dict[str, Any], made: Work, expected: bool
) -> None:
    known: Workload = workload(status)
    assert is_believed(made, known, PROOFS) is expected
