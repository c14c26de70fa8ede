"""What the hub does not send: manifests that the agent of a real cluster would refuse."""

from __future__ import annotations

import copy
import json
from typing import Any

from fairway.api.cluster import Cluster
from fairway.api.work import Work
from fairway.controllers.works.derive import derive
from tests.controllers.lives import claim, workload
from tests.controllers.test_works import JOB, cluster, known, pods, stored

Json = dict[str, Any]
TOKEN = {
    "apiVersion": "v1",
    "kind": "Secret",
    "type": "kubernetes.io/service-account-token",
    "metadata": {
        "name": "key",
        "namespace": "team",
        "annotations": {"kubernetes.io/service-account.name": "operator"},
    },
}


def real(**permits: Any) -> dict[str, Cluster]:
    return {"a": cluster("a", simulated=None, kubernetes={"permits": permits})}


def job(**pod: Any) -> Json:
    body = copy.deepcopy(JOB)
    body["spec"]["template"]["spec"].update(pod)
    return body


def claimed(*manifests: Json, attempt: int = 1) -> Any:
    status = {"phase": "Claimed", "claim": claim(pods("a", attempt=attempt), attempt=attempt)}
    return workload(status, template={"manifests": list(manifests)}, podSets=[])


def test_a_work_with_one_refused_manifest_is_not_sent_at_all() -> None:
    derived = derive(known(claimed(job(), job(hostPID=True)), clusters=real()))
    assert derived.writes == ()
    assert derived.refused_in == {"a"}
    (fault,) = derived.faults
    assert fault == (
        "spec.template.manifests[1].spec.template.spec.hostPID: sight of the node's processes is "
        "not permitted; HostNamespaces in permits.host of the Cluster allows it (in a)"
    )
    permitted = known(claimed(job(), job(hostPID=True)), clusters=real(host=["HostNamespaces"]))
    assert list(stored(derive(permitted))) == ["a"]


def test_what_goes_along_with_a_workload_is_checked_too() -> None:
    derived = derive(known(claimed(job()), clusters=real(), objects=[TOKEN]))
    assert derived.writes == ()
    (fault,) = derived.faults
    assert fault.startswith("Secret key.metadata.annotations[kubernetes.io/service-account.name]: ")


def test_what_the_server_noted_on_an_object_is_not_checked() -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"pod": "spec: {hostPID: true}"}}
    note = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(settings)}
    applied = {**settings, "metadata": {"name": "a", "namespace": "team", "annotations": note}}
    derived = derive(known(claimed(job()), clusters=real(), objects=[applied]))
    assert derived.faults == ()


def sent(*manifests: Json) -> dict[str, Work]:
    """The works of a workload, sent when the cluster still permitted what it does no more."""
    permissive = real(host=["HostPath", "HostNetwork", "HostNamespaces", "Privileged"])
    return stored(derive(known(claimed(*manifests), clusters=permissive)))


def test_what_runs_already_is_left_running() -> None:
    works = sent(job(hostPID=True))
    derived = derive(known(claimed(job(hostPID=True)), works, clusters=real()))
    assert (derived.writes, derived.faults) == ((), ())


def test_what_runs_already_gets_nothing_more_that_is_refused() -> None:
    works = sent(job(hostPID=True))
    more = claimed(job(hostPID=True, hostNetwork=True))
    derived = derive(known(more, works, clusters=real()))
    assert derived.writes == ()
    (fault,) = derived.faults
    assert "hostNetwork" in fault


def test_another_attempt_does_not_get_what_the_last_one_had() -> None:
    works = sent(job(hostPID=True))
    derived = derive(known(claimed(job(hostPID=True), attempt=2), works, clusters=real()))
    assert derived.writes == ()
    assert "hostPID" in derived.faults[0]
