"""What is played before the controllers of training jobs: JobSet, and those of Kubeflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.kinds.acts import (
    FAILED,
    changes,
    claim,
    counts,
    ends,
    evicted,
    labelled,
    made,
    says,
    starts,
)
from tests.kinds.stage import Act, Json, Scenario
from tests.kubernetes.kubelet import Pod

ROLE = "jobset.sigs.k8s.io/replicatedjob-name"
MESH = {"sample": "jobset.yaml", "document": 0}
PARAMETERS = {"sample": "jobset.yaml", "document": 1}
COMPLETED = says("Completed")


def _ready(**numbers: int) -> Callable[[Json], bool]:
    """Whether so many jobs of each role are ready."""
    return lambda found: all(
        item["ready"] == numbers.get(item["name"], item["ready"])
        for item in found.get("replicatedJobsStatus", [{"name": "", "ready": -1}])
    )


JOB_SETS = (
    Scenario(
        name="succeeds",
        **MESH,
        acts=(
            made(until=lambda status: "replicatedJobsStatus" in status),
            starts("its driver starts", count=1, chosen=labelled(ROLE, "driver")),
            starts("its workers start", count=8, until=_ready(driver=1, workers=2)),
            ends("its workers complete", count=8, chosen=labelled(ROLE, "workers")),
            ends("its driver completes", count=1, until=COMPLETED),
        ),
    ),
    Scenario(
        name="restarts-and-fails",
        **MESH,
        spec={"failurePolicy": {"maxRestarts": 1}},
        acts=(
            made(until=lambda status: "replicatedJobsStatus" in status),
            starts("its pods start", count=9, until=_ready(driver=1, workers=2)),
            ends(
                "a worker fails",
                1,
                count=1,
                chosen=labelled(ROLE, "workers"),
                until=counts(restarts=1),
            ),
            starts("its pods start again", count=9, until=_ready(driver=1, workers=2)),
            ends(
                "a worker fails again", 1, count=1, chosen=labelled(ROLE, "workers"), until=FAILED
            ),
        ),
    ),
    Scenario(
        name="suspends-and-resumes",
        **MESH,
        spec={"suspend": True},
        acts=(
            made("created suspended", until=says("Suspended")),
            changes("resumed", suspend=False, until=says("Suspended", "False")),
            starts("its pods start", count=9, until=_ready(driver=1, workers=2)),
            changes("suspended while it runs", suspend=True, until=says("Suspended")),
        ),
    ),
    Scenario(
        name="succeeds-by-policy",
        **PARAMETERS,
        acts=(
            made(until=lambda status: "replicatedJobsStatus" in status),
            starts("its pods start", count=7, until=_ready(server=1, worker=3)),
            ends("its workers complete", count=6, chosen=labelled(ROLE, "worker"), until=COMPLETED),
        ),
    ),
)

TRAINED_BY = "training.kubeflow.org/replica-type"


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A kind of the training operator: roles with so many pods each, and who ends the job."""

    sample: str
    field: str
    roles: Mapping[str, int]
    leader: str  # the role whose end is the job's; the workers where none leads
    before: tuple[Json, ...] = ()

    def all_active(self) -> Callable[[Json], bool]:
        return _actives(**self.roles)

    def scenarios(self) -> tuple[Scenario, ...]:
        played = {
            "succeeds": ({}, self._succeeds()),
            # Pods of this role are made anew where their exit code says that this may help.
            "restarts-and-fails": (
                {self.field: {"Worker": {"restartPolicy": "ExitCode"}}},
                self._restarts_and_fails(),
            ),
            "suspends-and-resumes": ({"runPolicy": {"suspend": True}}, self._suspends()),
        }
        return tuple(
            Scenario(name=name, sample=self.sample, before=self.before, spec=spec, acts=acts)
            for name, (spec, acts) in played.items()
        )

    def _succeeds(self) -> tuple[Act, ...]:
        leads = labelled(TRAINED_BY, self.leader.lower())
        leader, others = self.roles[self.leader], sum(self.roles.values()) - self.roles[self.leader]
        if not others:
            return (
                made(until=says("Created")),
                starts("a worker starts", count=1, until=_actives(Worker=1)),
                starts("all others start", count=leader - 1, until=self.all_active()),
                ends("a worker completes", count=1),
                ends("all others complete", count=leader - 1, until=says("Succeeded")),
            )
        workers = labelled(TRAINED_BY, "worker")
        return (
            made(until=says("Created")),
            starts("the one that leads starts", count=1, chosen=leads),
            starts("all others start", count=others, until=self.all_active()),
            ends("its workers complete", count=self.roles["Worker"], chosen=workers),
            ends("the one that leads completes", count=1, chosen=leads, until=says("Succeeded")),
        )

    def _restarts_and_fails(self) -> tuple[Act, ...]:
        total, workers = sum(self.roles.values()), labelled(TRAINED_BY, "worker")
        return (
            made(until=says("Created")),
            starts("its pods start", count=total, until=self.all_active()),
            ends(
                "a worker is killed",
                137,
                count=1,
                chosen=workers,
                until=_actives(Worker=self.roles["Worker"] - 1),
            ),
            starts("the worker made anew starts", count=1, until=self.all_active()),
            ends("a worker fails for good", 1, count=1, chosen=workers, until=FAILED),
        )

    def _suspends(self) -> tuple[Act, ...]:
        total, is_lifted = sum(self.roles.values()), says("Suspended", "False")
        return (
            made("created suspended", until=says("Suspended")),
            _suspend("resumed", False, until=is_lifted),
            starts("its pods start", count=total, until=self.all_active()),
            _suspend("suspended while it runs", True, until=says("Suspended")),
            _suspend("resumed again", False, until=is_lifted),
            starts("its pods start again", count=total, until=self.all_active()),
            ends("all complete", count=total, until=says("Succeeded")),
        )


def _suspend(what: str, is_suspended: bool, until: Callable[[Json], bool]) -> Act:
    return changes(what, runPolicy={"suspend": is_suspended}, until=until)


def _actives(**numbers: int) -> Callable[[Json], bool]:
    """Whether so many pods of each role are active."""
    return lambda found: all(
        found.get("replicaStatuses", {}).get(role, {}).get("active", 0) == number
        for role, number in numbers.items()
    )


TRAININGS = (
    *Trained(
        sample="pytorchjob.yaml",
        field="pytorchReplicaSpecs",
        roles={"Master": 1, "Worker": 3},
        leader="Master",
        before=(claim("corpus"),),
    ).scenarios(),
    *Trained(
        sample="tfjob.yaml",
        field="tfReplicaSpecs",
        roles={"Chief": 1, "PS": 2, "Worker": 4},
        leader="Chief",
    ).scenarios(),
    *Trained(
        sample="xgboostjob.yaml",
        field="xgbReplicaSpecs",
        roles={"Master": 1, "Worker": 2},
        leader="Master",
    ).scenarios(),
    *Trained(
        sample="paddlejob.yaml",
        field="paddleReplicaSpecs",
        roles={"Worker": 2},
        leader="Worker",
    ).scenarios(),
)
JAX_JOBS = Trained(
    sample="jaxjob.yaml",
    field="jaxReplicaSpecs",
    roles={"Worker": 4},
    leader="Worker",
).scenarios()


def _has_role(role: str) -> Callable[[Pod], bool]:
    """Pods of a role; either operator has a label of its own for it."""
    older, newer = labelled(TRAINED_BY, role), labelled("training.kubeflow.org/job-role", role)
    return lambda pod: older(pod) or newer(pod)


_LAUNCHER, _WORKER = _has_role("launcher"), _has_role("worker")
_LAUNCHED = _actives(Launcher=1, Worker=2)


def _launches(*, document: int = 0, suffix: str = "") -> tuple[Scenario, ...]:
    """A launcher and its workers; the launcher's end is the job's, as often as it may be tried."""
    sample: Json = {"sample": "mpijob.yaml", "document": document}
    begins = (
        made(until=says("Created")),
        starts("its workers start", count=2, chosen=_WORKER, until=_actives(Worker=2)),
        starts("its launcher starts", count=1, chosen=_LAUNCHER, until=_LAUNCHED),
    )
    completes = ends("its launcher completes", count=1, chosen=_LAUNCHER, until=says("Succeeded"))
    return (
        Scenario(name=f"succeeds{suffix}", **sample, acts=(*begins, completes)),
        Scenario(
            name=f"loses-a-worker{suffix}",
            **sample,
            acts=(*begins, evicted("a worker is evicted", count=1, chosen=_WORKER)),
        ),
        Scenario(
            name=f"suspends-and-resumes{suffix}",
            **sample,
            spec={"runPolicy": {"suspend": True}},
            acts=(
                made("created suspended", until=says("Suspended")),
                _suspend("resumed", False, until=says("Suspended", "False")),
                starts("its pods start", count=3, until=_LAUNCHED),
                _suspend("suspended while it runs", True, until=says("Suspended")),
                _suspend("resumed again", False, until=says("Suspended", "False")),
                starts("its pods start again", count=3, until=_LAUNCHED),
                completes,
            ),
        ),
    )


def _fails(what: str, until: Callable[[Json], bool]) -> Act:
    return ends(what, 1, count=1, chosen=_LAUNCHER, until=until)


MPI_JOBS = (
    *_launches(),
    Scenario(
        name="restarts-and-fails",
        sample="mpijob.yaml",
        spec={"runPolicy": {"backoffLimit": 1}},
        acts=(
            made(until=says("Created")),
            starts("its pods start", count=3, until=_LAUNCHED),
            _fails("its launcher fails", until=_actives(Launcher=0, Worker=2)),
            starts("the launcher made anew starts", count=1, until=_LAUNCHED),
            _fails("its launcher fails again", until=FAILED),
        ),
    ),
)
OLDER_MPI_JOBS = (
    *_launches(document=1, suffix="-in-version-1"),
    Scenario(
        name="fails-in-version-1",
        sample="mpijob.yaml",
        document=1,
        acts=(
            made(until=says("Created")),
            starts("its pods start", count=3, until=_LAUNCHED),
            _fails("its launcher fails", until=FAILED),
        ),
    ),
)

_FETCHES, _NODES = labelled(ROLE, "dataset-initializer"), labelled(ROLE, "node")

# This version says nothing of the jobs that it makes, hence nothing while it runs.
_FETCHED = (
    starts("its data is fetched", count=1, chosen=_FETCHES),
    ends("its data is there", count=1, chosen=_FETCHES),
    starts("its nodes start", count=4, chosen=_NODES),
)
TRAIN_JOBS = (
    Scenario(
        name="succeeds",
        sample="trainjob.yaml",
        acts=(
            made(),
            *_FETCHED,
            ends("its nodes complete", count=4, chosen=_NODES, until=says("Complete")),
        ),
    ),
    Scenario(
        name="fails",
        sample="trainjob.yaml",
        acts=(
            made(),
            *_FETCHED,
            ends("a node fails", 1, count=1, chosen=_NODES, until=FAILED),
        ),
    ),
    Scenario(
        name="suspends-and-resumes",
        sample="trainjob.yaml",
        spec={"suspend": True},
        acts=(
            made("created suspended", until=says("Suspended")),
            changes("resumed", suspend=False, until=says("Suspended", "False")),
            *_FETCHED,
            changes("suspended while it runs", suspend=True, until=says("Suspended")),
            changes("resumed again", suspend=False, until=says("Suspended", "False")),
        ),
    ),
)
