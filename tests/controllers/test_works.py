"""Works derived from claims: what each cluster is told, and when nothing is written."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from fairway.api import codec
from fairway.api.cluster import Cluster
from fairway.api.flavor import Flavor
from fairway.api.fleet import Fleet, FleetSpec
from fairway.api.meta import Condition
from fairway.api.names import ADOPTED, ENDED
from fairway.api.report import WorkState
from fairway.api.work import Work
from fairway.api.workload import Workload, WorkloadStatus
from fairway.controllers.adoption import is_own
from fairway.controllers.lifecycle.case import PodsSeen, Settings, WorkObservation
from fairway.controllers.lifecycle.next_status import next_status
from fairway.controllers.proofs import Proofs
from fairway.controllers.works.derive import Delete, Derived, Known, derive
from fairway.controllers.works.manifests import dependencies_of
from fairway.controllers.works.verdicts import is_past
from fairway.kinds.registry import built_in
from tests.controllers.lives import (
    NOW,
    case,
    claim,
    moment,
    placement,
    replicas,
    running,
    seen,
    tasks,
    text,
    workload,
)

CONTAINER = {
    "name": "main",
    "image": "train:1",
    "resources": {"limits": {"nvidia.com/gpu": "1"}},
    "envFrom": [{"configMapRef": {"name": "settings"}}],
}
GPU = "nvidia.com/gpu"
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {
        "parallelism": 4,
        "completions": 4,
        "completionMode": "Indexed",
        "template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}},
    },
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "serve"},
    "spec": {
        "replicas": 9,
        "selector": {"matchLabels": {"app": "serve"}},
        "template": {
            "metadata": {"labels": {"app": "serve"}},
            "spec": {"containers": [{"name": "main", "image": "serve:1"}]},
        },
    },
}
H100 = codec.decode(
    {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Flavor",
        "metadata": {"name": "h100"},
        "spec": {
            "nodeLabels": {"accelerator": "h100"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
        },
    },
    Flavor,
)


def cluster(name: str, status: dict[str, Any] | None = None, **spec: Any) -> Cluster:
    plain = {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"simulated": {}, **spec},
        "status": {"phase": "Ready", **(status or {})},
    }
    return codec.decode(plain, Cluster)


def fleet_spec(**spec: Any) -> FleetSpec:
    plain = {"apiVersion": "fairway.dev/v1alpha1", "kind": "Fleet", "metadata": {"name": "fleet"}}
    return codec.decode({**plain, "spec": spec}, Fleet).spec


PROOFS = Proofs(b"of the hub")
CLUSTERS = {name: cluster(name) for name in ("a", "b")}


def pods(where: str, count: int = 2, **more: Any) -> dict[str, Any]:
    """A placement of the pods of a Job, whose one pod set is called as its kind calls it."""
    name = built_in().pod_sets(JOB, "Gang")[0].name
    extra = {"flavors": {"nvidia.com/gpu": "h100"}, **more.pop("pods", {})}
    return placement(where, count, podSets=[{"name": name, "count": count, **extra}], **more)


def gang(*placements: dict[str, Any], held: dict[str, Any] | None = None, **more: Any) -> Workload:
    status = {"phase": "Claimed", "claim": claim(*placements, **(held or {}))}
    metadata = more.pop("metadata", None)
    status.update(more.pop("status", {}))
    return workload(status, metadata, template={"manifests": [JOB]}, podSets=[], **more)


def known(found: Workload | None, works: dict[str, Work] | None = None, **more: Any) -> Known:
    more.setdefault("clusters", CLUSTERS)
    return Known(
        workload=found,
        now=NOW,
        term=more.pop("term", 7),
        proofs=PROOFS,
        works=works or {},
        flavors={"h100": H100},
        **more,
    )


def stored(derived: Derived, before: dict[str, Work] | None = None) -> dict[str, Work]:
    """The works on the hub once all was written, as they are read back."""
    after = dict(before or {})
    for write in derived.writes:
        name = write.work.spec.cluster
        if isinstance(write, Delete):
            del after[name]
        else:
            after[name] = codec.decode(codec.to_plain(write.work), Work)
    return after


def sent(found: Workload, **more: Any) -> dict[str, Work]:
    """The works of a workload, and proof that deriving again writes nothing."""
    first = known(found, **more)
    works = stored(derive(first))
    assert derive(known(found, works, **{**more, "term": 99})).writes == ()
    return works


def told(derived: Derived) -> list[str]:
    return [
        f"{type(write).__name__} {write.work.spec.cluster} {write.work.spec.attempt} "
        f"{'tombstone' if write.work.spec.tombstone else write.work.spec.desired}"
        for write in derived.writes
    ]


def main(work: Work) -> dict[str, Any]:
    return work.spec.manifests[-1].object


def pod_spec(work: Work) -> dict[str, Any]:
    found: dict[str, Any] = main(work)["spec"]["template"]["spec"]
    return found


class TestTheDecisionIsWritten:
    def test_counts_flavor_and_namespace(self) -> None:
        work = sent(gang(pods("a", 2)))["a"]
        assert (main(work)["spec"]["parallelism"], main(work)["metadata"]["namespace"]) == (
            2,
            "team",
        )
        assert pod_spec(work)["nodeSelector"] == {"accelerator": "h100"}
        assert pod_spec(work)["tolerations"] == [{"operator": "Exists", "key": "gpu"}]
        assert (work.spec.term, work.spec.attempt, work.spec.desired) == (7, 1, "Run")
        assert (work.metadata.name, work.metadata.namespace) == ("team.train", "fairway-cluster-a")

    def test_a_split_gang_gets_its_part_in_each_cluster(self) -> None:
        works = sent(gang(pods("a", 1), pods("b", 3)))
        assert {name: main(work)["spec"]["parallelism"] for name, work in works.items()} == {
            "a": 1,
            "b": 3,
        }

    def test_topology_domains_become_an_affinity(self) -> None:
        topology = [
            {"name": "block", "nodeLabel": "net/block"},
            {"name": "rack", "nodeLabel": "net/rack"},
        ]
        chosen = {"topologyLevel": "rack", "domains": {"r1": 1, "b2/r2": 1}}
        clusters = {"a": cluster("a", topology=topology)}
        work = sent(gang(pods("a", 2, pods=chosen)), clusters=clusters)["a"]
        required = pod_spec(work)["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]
        assert [
            [(expression["key"], expression["values"]) for expression in term["matchExpressions"]]
            for term in required["nodeSelectorTerms"]
        ] == [[("net/rack", ["r1"])], [("net/block", ["b2"]), ("net/rack", ["r2"])]]

    def test_nodes_that_are_set_aside_are_kept_away_from_for_the_whole_attempt(self) -> None:
        aside = {"avoidedNodes": [{"name": "n1"}, {"name": "n2", "until": text(NOW - 1)}]}
        found = gang(pods("a"))
        works = sent(found, clusters={"a": cluster("a", aside)})
        assert "n1" in str(pod_spec(works["a"])["affinity"])
        assert "n2" not in str(pod_spec(works["a"])["affinity"])
        assert derive(known(found, works)).writes == ()  # though the node is back now

    def test_the_clusters_own_names(self) -> None:
        profile = {
            "resources": {"nvidia.com/gpu": "acme.com/gpu"},
            "nodeLabels": {"accelerator": "acme.com/model"},
        }
        work = sent(gang(pods("a")), clusters={"a": cluster("a", profile=profile)})["a"]
        assert pod_spec(work)["nodeSelector"] == {"acme.com/model": "h100"}
        assert "acme.com/gpu" in pod_spec(work)["containers"][0]["resources"]["limits"]

    def test_an_alternatives_image_and_environment(self) -> None:
        name = pods("a")["podSets"][0]["name"]
        other = {
            "name": "small",
            "podSets": [
                {"name": name, "image": "small:1", "environment": [{"name": "M", "value": "s"}]}
            ],
        }
        found = gang(pods("a"), held={"alternative": "small"}, alternatives=[other])
        container = pod_spec(sent(found)["a"])["containers"][0]
        assert (container["image"], container["env"]) == ("small:1", [{"name": "M", "value": "s"}])

    def test_a_service_gets_its_replicas(self) -> None:
        status = {"phase": "Claimed", "claim": claim(replicas("a", 3))}
        found = workload(
            status,
            template={"manifests": [DEPLOYMENT]},
            podSets=[],
            mode="Divided",
            replicas=3,
        )
        assert main(sent(found)["a"])["spec"]["replicas"] == 3

    def test_checkpoint_estimate_and_silence(self) -> None:
        found = gang(
            pods("a"),
            checkpoint={"signal": "SIGUSR1", "graceSeconds": 90},
            runSeconds={"estimate": 500},
        )
        settings = Settings(on_cluster_lost="StopAndMove", cluster_lost_seconds=600)
        spec = sent(found, settings=settings)["a"].spec
        assert (spec.stop.signal, spec.stop.grace_seconds) == ("SIGUSR1", 90)
        assert spec.run_seconds_estimate == 500
        assert spec.stop_when_silent_seconds == FleetSpec().health.lost_seconds + 600

    @pytest.mark.parametrize(("connection", "is_told"), [("Push", False), ("Pull", True)])
    def test_only_an_agent_that_is_there_is_told_to_stop_by_itself(
        self, connection: str, is_told: bool
    ) -> None:
        here = {"a": cluster("a", simulated=None, kubernetes={"connection": connection})}
        settings = Settings(on_cluster_lost="StopAndMove")
        spec = sent(gang(pods("a")), clusters=here, settings=settings)["a"].spec
        assert (spec.stop_when_silent_seconds is not None) == is_told

    def test_a_cluster_says_what_happens_when_it_is_lost_unless_the_workload_does(self) -> None:
        stops = cluster("a", whenLost={"action": "StopAndMove", "afterSeconds": 120})
        here = {"a": stops, "b": cluster("b")}
        works = sent(gang(pods("a"), pods("b"), gang={"clustersMax": 2}), clusters=here)
        assert {name: work.spec.stop_when_silent_seconds for name, work in works.items()} == {
            "a": FleetSpec().health.lost_seconds + 120,
            "b": None,
        }
        waits = Settings(on_cluster_lost="Wait")
        assert sent(gang(pods("a")), clusters=here, settings=waits)["a"].spec == (
            sent(gang(pods("a")))["a"].spec
        )

    def test_the_fleet_says_it_where_nobody_else_does(self) -> None:
        lost = fleet_spec(defaults={"onClusterLost": "StopAndMove", "clusterLostSeconds": 90})
        spec = sent(gang(pods("a")), settings=Settings(fleet=lost))["a"].spec
        assert spec.stop_when_silent_seconds == lost.health.lost_seconds + 90

    def test_a_cluster_that_does_not_listen_is_not_told_another_silence(self) -> None:
        found = gang(pods("a"))
        works = sent(found, settings=Settings(on_cluster_lost="StopAndMove"))
        silent = {"a": cluster("a", {"phase": "Lost"})}
        assert derive(known(found, works, clusters=silent)).writes == ()

    def test_nodes_to_come(self) -> None:
        waits = [{"type": "Provision", "cluster": "a", "pool": "spot", "count": 3}]
        spec = sent(gang(pods("a"), held={"waitsFor": waits}))["a"].spec
        assert [(item.pool, item.count) for item in spec.provision] == [("spot", 3)]

    def test_what_pods_need_comes_first(self) -> None:
        settings_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "team", "resourceVersion": "4"},
            "data": {"a": "b"},
        }
        found = gang(pods("a"))
        assert [dependency.name for dependency in dependencies_of(found, built_in())] == [
            "settings"
        ]
        manifests = sent(found, objects=[settings_map])["a"].spec.manifests
        assert [manifest.object["kind"] for manifest in manifests] == ["ConfigMap", "Job"]
        assert "resourceVersion" not in manifests[0].object["metadata"]

    def test_data_outlives_the_work(self) -> None:
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": "data",
                "namespace": "team",
                "annotations": {"fairway.dev/bound-in": "b"},
            },
        }
        found = gang(pods("a"))
        manifest = sent(found, objects=[volume])["a"].spec.manifests[0]
        assert (manifest.update, manifest.deletion) == ("CreateOnly", "Orphan")
        assert "annotations" not in manifest.object["metadata"] or (
            "fairway.dev/bound-in" not in manifest.object["metadata"]["annotations"]
        )


def claim_template(name: str, *requests: dict[str, Any], **devices: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "team", "resourceVersion": "4"},
        "spec": {"spec": {"devices": {"requests": list(requests), **devices}}},
    }


def devices_job(*claims: dict[str, Any]) -> dict[str, Any]:
    asked: dict[str, Any] = copy.deepcopy(JOB)
    asked["spec"]["template"]["spec"]["resourceClaims"] = list(claims)
    return asked


EXACT = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 2}}
EITHER = {
    "name": "gpu",
    "firstAvailable": [
        {"name": "large", "deviceClassName": "large.example.com", "count": 1},
        {"name": "small", "deviceClassName": "small.example.com", "count": 4},
    ],
}
SHARED = {"requests": ["gpu/large", "gpu/small"], "matchAttribute": "example.com/numa"}
LARGE_ONLY = {"requests": ["gpu/large"], "matchAttribute": "example.com/link"}


class TestDevices:
    def asking(self, device_class: str, count: int, **held: Any) -> Workload:
        """A gang of a Job whose pods ask for devices, with a claim that counts some."""
        resource = f"deviceclass.resource.kubernetes.io/{device_class}.example.com"
        placed = pods("a", pods={"requests": {resource: count}})
        job = devices_job({"name": "gpu", "resourceClaimTemplateName": "gpu"})
        status = {"phase": "Claimed", "claim": claim(placed, **held)}
        return workload(status, template={"manifests": [job]}, podSets=[])

    def test_templates_go_along(self) -> None:
        found, template = self.asking("gpu", 2), claim_template("gpu", EXACT)
        assert [item.kind for item in dependencies_of(found, built_in())] == [
            "ConfigMap",
            "ResourceClaimTemplate",
        ]
        manifests = sent(found, objects=[template])["a"].spec.manifests
        assert [item.object["kind"] for item in manifests] == ["ResourceClaimTemplate", "Job"]
        assert manifests[0].object["metadata"] == {"name": "gpu", "namespace": "team"}
        assert manifests[0].object["spec"] == template["spec"]

    @pytest.mark.parametrize(
        ("form", "device_class", "count", "constraints"),
        [
            (
                "",
                "large",
                1,
                [{**SHARED, "requests": ["gpu"]}, {**LARGE_ONLY, "requests": ["gpu"]}],
            ),
            ("device-choice-2", "small", 4, [{**SHARED, "requests": ["gpu"]}]),
        ],
    )
    def test_alternatives_are_pinned_to_the_one_that_was_charged(
        self, form: str, device_class: str, count: int, constraints: list[dict[str, Any]]
    ) -> None:
        template = claim_template("gpu", EITHER, constraints=[SHARED, LARGE_ONLY])
        found = self.asking(device_class, count, alternative=form)
        work = sent(found, objects=[template])["a"]
        made = work.spec.manifests[0].object
        chosen = {"deviceClassName": f"{device_class}.example.com", "count": count}
        assert made["spec"]["spec"]["devices"] == {
            "requests": [{"name": "gpu", "exactly": chosen}],
            "constraints": constraints,
        }
        name = made["metadata"]["name"]
        assert name.startswith("gpu-")
        assert pod_spec(work)["resourceClaims"] == [
            {"name": "gpu", "resourceClaimTemplateName": name}
        ]

    def test_two_choices_of_one_template_have_two_names(self) -> None:
        template = claim_template("gpu", EITHER)
        names = {
            sent(found, objects=[template])["a"].spec.manifests[0].object["metadata"]["name"]
            for found in (
                self.asking("large", 1),
                self.asking("small", 4, alternative="device-choice-2"),
            )
        }
        assert len(names) == 2

    def test_the_clusters_own_name_of_a_class(self) -> None:
        prefix = "deviceclass.resource.kubernetes.io/"
        profile = {"resources": {f"{prefix}gpu.example.com": f"{prefix}acme.com"}}
        clusters = {"a": cluster("a", profile=profile)}
        found = self.asking("gpu", 2)
        work = sent(found, objects=[claim_template("gpu", EXACT)], clusters=clusters)["a"]
        (request,) = work.spec.manifests[0].object["spec"]["spec"]["devices"]["requests"]
        assert request["exactly"]["deviceClassName"] == "acme.com"

    def test_a_template_that_was_replaced_since_is_not_sent_uncharged(self) -> None:
        more = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 8}}
        found = self.asking("gpu", 2)
        derived = derive(known(found, objects=[claim_template("gpu", more)]))
        assert derived.writes == ()
        (fault,) = derived.faults
        assert fault.endswith("its resource claims changed since it was claimed")
        works = sent(found, objects=[claim_template("gpu", EXACT)])
        assert derive(known(found, works, objects=[claim_template("gpu", more)])).faults == ()

    def test_nor_is_one_that_is_gone(self) -> None:
        derived = derive(known(self.asking("gpu", 2)))
        assert derived.writes == ()
        assert "the hub has no ResourceClaimTemplate gpu" in derived.faults[0]


SWEEP = {"mode": "Independent", "tasks": {"count": 8, "rangeSize": 4}}


def sweep(numbers: str, count: int) -> Workload:
    status = {"phase": "Running", "claim": claim(tasks("a", numbers, count))}
    return workload(status, template={"manifests": [JOB]}, podSets=[], **SWEEP)


class TestTasks:
    def test_a_run_of_tasks_is_a_job(self) -> None:
        work = sent(sweep("0-3", 4))["a"]
        assert [manifest.object["metadata"]["name"] for manifest in work.spec.manifests] == [
            "train-0"
        ]

    def test_tasks_that_are_over_change_nothing(self) -> None:
        works = sent(sweep("0-3", 4))
        assert derive(known(sweep("2-3", 2), works)).writes == ()

    def test_more_tasks_leave_a_run_that_is_under_way_as_it_is(self) -> None:
        works = sent(sweep("0-3", 4))
        after = stored(derive(known(sweep("2-7", 6), works)), works)["a"]
        assert after.spec.tasks == "0-7"
        assert after.spec.manifests[0] == works["a"].spec.manifests[0]


class TestWhenNothingMayRunYet:
    WAITS = {
        "decidedAt": text(NOW - 1),
        "waitsFor": [
            {
                "type": "Preemption",
                "workload": {"namespace": "team", "name": "victim"},
                "attempt": 1,
            }
        ],
    }

    @pytest.mark.parametrize(
        ("status", "expected"),
        [
            ({"phase": "Running", "claim": claim(placement("a"))}, []),
            ({"phase": "Stopping", "releasing": [placement("a")]}, []),
            ({"phase": "Waiting"}, ["Create a 1 Run"]),
            (
                {"phase": "Claimed", "claim": {**claim(placement("a")), "attempt": 2}},
                ["Create a 1 Run"],
            ),
            ({"phase": "Stopping", "releasing": [placement("b")]}, []),
        ],
        ids=[
            "its victim has yet to hear of it",
            "its victim is still leaving",
            "its victim is gone",
            "its victim has another claim since",
            "its victim is leaving another cluster",
        ],
    )
    def test_a_claim_waits_for_its_victims(
        self, status: dict[str, Any], expected: list[str]
    ) -> None:
        found = gang(pods("a"), held=self.WAITS)
        victim = workload(status)
        assert told(derive(known(found, victims={"team/victim": victim}))) == expected

    def test_who_released_only_a_part_and_runs_on_is_not_waited_for_without_end(self) -> None:
        found = gang(pods("a"), held={**self.WAITS, "decidedAt": text(NOW - 60)})
        victim = workload({"phase": "Running", "claim": claim(placement("a"))})
        assert told(derive(known(found, victims={"team/victim": victim}))) == ["Create a 1 Run"]

    @pytest.mark.parametrize(("start", "desired"), [("Reserve", "Reserve"), ("Detect", "Run")])
    def test_the_fleet_says_how_gangs_start_that_do_not(self, start: str, desired: str) -> None:
        fleet = fleet_spec(defaults={"gangStart": start})
        works = sent(gang(pods("a"), gang={"placeholders": True}), settings=Settings(fleet=fleet))
        assert works["a"].spec.desired == desired

    def test_placeholders_hold_the_room_until_every_part_has_its_own(self) -> None:
        found = gang(pods("a"), pods("b"), gang={"placeholders": True, "clustersMax": 2})
        works = sent(found)
        assert {work.spec.desired for work in works.values()} == {"Reserve"}
        half = {"a": seen("Reserved"), "b": seen("Pending")}
        assert derive(known(found, works, seen=half)).writes == ()
        both = {"a": seen("Reserved"), "b": seen("Reserved")}
        assert told(derive(known(found, works, seen=both))) == ["Update a 1 Run", "Update b 1 Run"]

    def test_what_runs_is_not_reserved_again(self) -> None:
        found = gang(pods("a"), gang={"placeholders": True})
        both = {"a": seen("Reserved")}
        works = sent(found, seen=both)
        assert derive(known(found, works, seen={"a": seen("Pending")})).writes == ()

    def test_nothing_is_written_to_a_cluster_that_is_only_observed(self) -> None:
        clusters = {"a": cluster("a", mode="Shadow")}
        assert derive(known(gang(pods("a")), clusters=clusters)).writes == ()

    def test_a_new_attempt_waits_until_the_earlier_one_is_gone(self) -> None:
        works = sent(gang(pods("a")))
        again = gang(pods("a", attempt=2), status={"releasing": [placement("a")]})
        assert told(derive(known(again, works))) == ["Update a 1 tombstone"]

    def test_a_workload_of_the_same_name_waits_until_the_agent_forgot_the_earlier_one(self) -> None:
        found = gang(pods("a"), metadata={"uid": "u-2"})
        works = sent(gang(pods("a")))
        over = {"a": seen("Succeeded")}
        assert told(derive(known(found, works, seen=over))) == ["Delete a 1 Run"]
        assert derive(known(found, {}, seen=over)).writes == ()
        assert told(derive(known(found, {}))) == ["Create a 1 Run"]


class TestEnds:
    def test_what_is_left_is_tombstoned_and_then_deleted(self) -> None:
        works = sent(gang(pods("a")))
        leaving = workload({"phase": "Stopping", "releasing": [placement("a")]})
        first = derive(known(leaving, works))
        assert told(first) == ["Update a 1 tombstone"]
        works = stored(first, works)
        gone = {"a": seen("Gone")}
        assert derive(known(leaving, works, seen=gone)).writes == ()  # until that is noted
        waiting = workload({"phase": "Waiting", "history": [{"attempt": 1}]})
        assert told(derive(known(waiting, works, seen=gone))) == ["Delete a 1 tombstone"]

    def test_a_work_that_was_never_made_is_refused_once_and_for_all(self) -> None:
        leaving = workload({"phase": "Stopping", "releasing": [placement("a")]})
        assert told(derive(known(leaving))) == ["Create a 1 tombstone"]

    def test_an_attempt_that_was_never_sent_leaves_by_the_tombstone_of_the_one_before(self) -> None:
        works = sent(gang(pods("a")))
        leaving = workload({"phase": "Stopping", "releasing": [placement("a", attempt=3)]})
        over = {"a": seen("Succeeded")}
        first = derive(known(leaving, works, seen=over))
        assert told(first) == ["Update a 3 tombstone"]
        assert derive(known(leaving, stored(first, works), seen=over)).writes == ()

    def test_a_tombstone_becomes_the_next_attempt(self) -> None:
        works = sent(gang(pods("a")))
        leaving = workload({"phase": "Stopping", "releasing": [placement("a")]})
        works = stored(derive(known(leaving, works)), works)
        again = gang(pods("a", attempt=2))
        assert told(derive(known(again, works, seen={"a": seen("Gone")}))) == ["Update a 2 Run"]

    def test_what_was_left_behind_in_a_lost_cluster_is_stopped_when_it_comes_back(self) -> None:
        works = sent(gang(pods("a")))
        moved = gang(pods("b", attempt=2))
        writes = told(derive(known(moved, works, seen={"a": seen("Running")})))
        assert writes == ["Create b 2 Run", "Update a 1 tombstone"]

    def test_the_work_of_a_finished_workload_stays_until_the_workload_goes(self) -> None:
        works = sent(gang(pods("a")))
        over = {"a": seen("Succeeded")}
        done = workload(
            {"phase": "Succeeded", "finishedAt": text(NOW), "history": [{"attempt": 1}]}
        )
        assert derive(known(done, works, seen=over)).writes == ()
        assert told(derive(known(None, works, seen=over))) == ["Delete a 1 Run"]

    @pytest.mark.parametrize(
        "behind",
        [
            pytest.param({}, id="as it was before it was ever claimed"),
            pytest.param({"phase": "Waiting", "history": [{"attempt": 1}]}, id="between attempts"),
        ],
    )
    def test_works_of_a_later_attempt_than_is_known_of_are_left_alone(
        self, behind: dict[str, Any]
    ) -> None:
        works = sent(gang(pods("a", attempt=2)))
        assert derive(known(workload(behind), works)).writes == ()
        assert derive(known(gang(pods("a")), works)).writes == ()

    def test_what_runs_for_a_workload_that_is_not_there_is_left_alone(self) -> None:
        works = sent(gang(pods("a")))
        assert derive(known(None, works, seen={"a": seen("Running")})).writes == ()

    @pytest.mark.parametrize(
        ("seen_there", "written"),
        [
            pytest.param({}, ["Delete a 1 Run"], id="whose agent never took it"),
            pytest.param({"a": "Running"}, [], id="whose agent has an earlier word of it"),
        ],
    )
    def test_a_work_refused_for_its_term_goes_once_its_workload_is_gone(
        self, seen_there: dict[str, str], written: list[str]
    ) -> None:
        works = {name: refused(work) for name, work in sent(gang(pods("a"))).items()}
        there = {name: seen(phase) for name, phase in seen_there.items()}
        assert told(derive(known(None, works, seen=there))) == written
        # One that is there is told again, in the term of today.
        again = told(derive(known(gang(pods("a")), works, seen=there)))
        assert again == ["Update a 1 Run"]

    def test_works_of_a_cluster_that_was_removed_go(self) -> None:
        works = sent(gang(pods("a")))
        waiting = workload({"phase": "Waiting", "history": [{"attempt": 1}]})
        assert told(derive(known(waiting, works, clusters={}))) == ["Delete a 1 Run"]

    def test_replicas_that_leave_a_cluster_where_others_stay_are_no_tombstone(self) -> None:
        spec = {"mode": "Divided", "replicas": 3, "template": {"manifests": [DEPLOYMENT]}}
        before = running(replicas("a", 3), spec={**spec, "podSets": []})
        after = running(
            replicas("a", 1), spec={**spec, "podSets": []}, releasing=[replicas("a", 2)]
        )
        derived = derive(known(after, sent(before)))
        assert told(derived) == ["Update a 1 Run"]
        assert main(stored(derived)["a"])["spec"]["replicas"] == 1


def refused(work: Work, reason: str = "TermTooLow") -> Work:
    """As its agent leaves it that heard a later term, or a later attempt, first."""
    condition = Condition(
        type="Accepted",
        status="False",
        reason=reason,
        observed_generation=work.metadata.generation,
        last_transition_time=datetime.fromtimestamp(NOW, UTC),
    )
    return replace(work, status=replace(work.status, conditions=(condition,)))


class TestAdoption:
    def brought_back(self, found: Workload) -> dict[str, Work]:
        return {
            name: replace(work, metadata=replace(work.metadata, labels={ADOPTED: "true"}))
            for name, work in sent(found).items()
        }

    def test_a_work_whose_agent_has_a_later_attempt_is_deleted_so_that_the_agent_brings_it_back(
        self,
    ) -> None:
        found = gang(pods("a"))
        works = {name: refused(work, "AttemptTooLow") for name, work in sent(found).items()}
        states: dict[str, WorkObservation] = {"a": seen("Running", attempt=2)}
        assert told(derive(known(found, works, seen=states))) == ["Delete a 1 Run"]

    def test_an_end_is_taken_over_by_the_same_workload_only(self) -> None:
        found = gang(pods("a"))
        works = {
            name: replace(work, metadata=replace(work.metadata, labels={ADOPTED: ENDED}))
            for name, work in sent(found).items()
        }
        forgot = replace(found, status=workload().status)
        states: dict[str, WorkObservation] = {"a": seen("Succeeded")}
        status = next_status(case(forgot, states, sent=works)).status
        assert status is not None
        assert status.phase == "Claimed"
        other = replace(forgot, metadata=replace(forgot.metadata, uid="another"))
        assert not is_own(works["a"], other, built_in())
        assert told(derive(known(other, works, seen=states))) == ["Delete a 1 Run"]

    def test_a_hub_that_forgot_stops_nothing_and_takes_its_claim_back(self) -> None:
        found = gang(pods("a"), pods("b"))
        works = self.brought_back(found)
        forgot = replace(found, status=workload().status)
        states: dict[str, WorkObservation] = {"a": seen("Running"), "b": seen("Running")}
        assert derive(known(forgot, works, seen=states)).writes == ()
        status = next_status(case(forgot, states, sent=works)).status
        assert status is not None
        assert status.claim is not None
        assert found.status.claim is not None
        assert status.claim.placements == found.status.claim.placements
        assert (status.phase, status.claim.decided_at) == ("Claimed", moment(NOW))

    def test_a_gang_does_not_take_over_an_attempt_that_it_has_elsewhere(self) -> None:
        works = {**sent(gang(pods("a"))), "b": self.brought_back(gang(pods("b")))["b"]}
        found = gang(pods("a"))
        states: dict[str, WorkObservation] = {"a": seen("Pending"), "b": seen("Running")}
        status = next_status(case(found, states, sent=works)).status
        assert status is None or (status.claim and len(status.claim.placements) == 1)
        assert told(derive(known(found, works, seen=states))) == ["Update b 1 tombstone"]

    @pytest.mark.parametrize(
        ("status", "expected"),
        [
            pytest.param(
                running(replicas("a", 1)).status, ["a 1", "b 1"], id="beside those it knows"
            ),
            pytest.param(
                workload(
                    {
                        "phase": "Waiting",
                        "history": [{"attempt": 1, "clusters": ["a"], "endedAt": text(NOW)}],
                    }
                ).status,
                ["b 1"],
                id="after an end that it knows",
            ),
        ],
    )
    def test_a_service_takes_over_replicas_that_it_does_not_know_in_its_own_attempt(
        self, status: WorkloadStatus, expected: list[str]
    ) -> None:
        spec = {"mode": "Divided", "replicas": 1, "template": {"manifests": [DEPLOYMENT]}}
        spec["podSets"] = []
        works = self.brought_back(running(replicas("b", 1), spec=spec))
        found = replace(workload(None, **spec), status=status)
        ready = seen("Running", pods=PodsSeen(ready=1))
        states: dict[str, WorkObservation] = {"a": ready, "b": ready}
        assert derive(known(found, works, seen=states)).writes[1:] == ()
        after = next_status(case(found, states, sent=works)).status
        assert after is not None
        assert after.claim is not None
        assert after.claim.attempt == 2
        placed = sorted(f"{each.cluster} {each.attempt}" for each in after.claim.placements)
        assert placed == expected
        # Replicas that stop already are not taken over.
        states["b"] = seen("Stopping")
        again = next_status(case(found, states, sent=works)).status or found.status
        assert again.claim == found.status.claim

    def test_a_placement_takes_the_later_attempt_that_an_agent_has_of_it(self) -> None:
        spec = {"mode": "Divided", "replicas": 1, "template": {"manifests": [DEPLOYMENT]}}
        spec["podSets"] = []
        held = {"attempt": 2}
        works = self.brought_back(running(replicas("a", 1, attempt=2), spec=spec, claim=held))
        found = running(replicas("a", 1, attempt=1), spec=spec, claim=held)
        ready = seen("Running", attempt=2, pods=PodsSeen(ready=1))
        status = next_status(case(found, {"a": ready}, sent=works)).status
        assert status is not None
        assert status.claim is not None
        assert [(each.cluster, each.attempt) for each in status.claim.placements] == [("a", 2)]

    def test_an_end_of_an_earlier_workload_makes_way_once_its_agent_has_forgotten_it(self) -> None:
        found = gang(pods("a"))
        ended = {
            name: replace(refused(work), metadata=replace(work.metadata, labels={ADOPTED: ENDED}))
            for name, work in sent(found).items()
        }
        other = replace(found, metadata=replace(found.metadata, uid="another"))
        assert told(derive(known(other, ended))) == ["Delete a 1 Run"]
        leaving = gang(pods("a"), status={"phase": "Stopping", "claim": None})
        leaving = replace(
            leaving,
            metadata=other.metadata,
            status=replace(leaving.status, releasing=found.status.claim.placements),
        )
        states: dict[str, WorkObservation] = {"a": seen("Gone")}
        assert told(derive(known(leaving, ended, seen=states))) == ["Delete a 1 Run"]
        assert told(derive(known(leaving))) == ["Create a 1 tombstone"]

    def test_a_workload_that_is_deleted_takes_over_what_runs_so_that_it_is_stopped(self) -> None:
        found = gang(pods("a"))
        works = self.brought_back(found)
        deleted = replace(found.metadata, deletion_timestamp=moment(NOW))
        forgot = replace(found, metadata=deleted, status=workload().status)
        states: dict[str, WorkObservation] = {"a": seen("Running")}
        status = next_status(case(forgot, states, sent=works)).status
        assert status is not None
        assert status.phase == "Claimed"
        # While clusters are awaited nobody knows whether something runs.
        assert not next_status(case(forgot, awaits_clusters=True)).releases
        assert next_status(case(forgot)).releases

    def test_a_workload_that_stops_takes_over_a_later_attempt_that_is_brought_back(self) -> None:
        later = gang(pods("a", attempt=2), held={"attempt": 2})
        works = self.brought_back(later)
        earlier = gang(pods("a", attempt=1))
        assert earlier.status.claim is not None
        stops = replace(
            earlier.status, phase="Stopping", claim=None, releasing=earlier.status.claim.placements
        )
        stopping = replace(earlier, status=stops)
        states: dict[str, WorkObservation] = {"a": seen("Succeeded", attempt=2)}
        assert told(derive(known(stopping, works, seen=states))) == []
        status = next_status(case(stopping, states, sent=works)).status
        assert status is not None
        assert (status.phase, status.claim and status.claim.attempt) == ("Claimed", 2)

    def test_a_workload_made_anew_takes_over_what_runs(self) -> None:
        found = gang(pods("a", 4))
        anew = replace(found, metadata=replace(found.metadata, uid="u-9"))
        works = self.brought_back(found)
        derived = derive(known(anew, works, seen={"a": seen("Running")}))
        assert told(derived) == ["Update a 1 Run"]
        after = stored(derived)["a"]
        assert after.spec.manifests == works["a"].spec.manifests
        assert (after.spec.workload.uid, after.metadata.labels) == ("u-9", {})

    @pytest.mark.parametrize(
        ("earlier", "asked", "is_taken"),
        [
            ({"requests": {GPU: "4"}}, {}, True),
            ({"requests": {GPU: "8"}}, {}, True),
            ({"requests": {GPU: "1"}}, {}, False),
            ({"requests": {"cpu": "4"}}, {}, False),
            ({"requests": {}}, {}, True),
            ({"requests": {GPU: "4"}, "name": "other"}, {}, False),
            ({"requests": {GPU: "4"}, "count": 1}, {}, False),
            ({"requests": {GPU: "4"}, "count": 1}, {"leastCount": 1}, True),
            ({"requests": {GPU: "4"}, "count": 3}, {}, False),
        ],
        ids=[
            "alike",
            "larger pods",
            "smaller pods",
            "pods of another resource",
            "pods that are charged as given now",
            "other pods",
            "too few pods",
            "few pods, but enough",
            "too many pods",
        ],
    )
    def test_what_runs_is_taken_over_only_if_its_claim_covers_what_would_run(
        self, earlier: dict[str, Any], asked: dict[str, Any], *, is_taken: bool
    ) -> None:
        asked = {"name": "worker", "count": 2, "requests": {GPU: "4"}, **asked}
        placed = {"name": "worker", "count": 2, **earlier}
        found = workload({"phase": "Claimed", "claim": claim(placement("a", podSets=[placed]))})
        (work,) = self.brought_back(found).values()
        forgot = workload(None, {"uid": "u-9"}, podSets=[asked])
        assert is_own(work, forgot, built_in()) is is_taken
        running = derive(known(forgot, {"a": work}, seen={"a": seen("Running")}))
        assert told(running) == ([] if is_taken else ["Update a 1 tombstone"])


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (
            {**JOB, "metadata": {"name": "x", "namespace": "kube-system"}},
            (
                "spec.template.manifests[0].metadata.namespace: "
                "kube-system is not the workload's own, team"
            ),
        ),
        (
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "x"},
            },
            "spec.template.manifests[0].kind: ClusterRoleBinding is not allowed in a workload",
        ),
        (
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}},
            "spec.template.manifests[0].kind: Namespace is not allowed in a workload",
        ),
    ],
)
def test_a_template_gives_no_rights_beyond_its_namespace(
    manifest: dict[str, Any], expected: str
) -> None:
    found = workload(
        {"phase": "Claimed", "claim": claim(placement("a"))}, template={"manifests": [manifest]}
    )
    assert derive(known(found)) == Derived(faults=(expected,))


@pytest.mark.parametrize(
    ("reason", "last", "reported", "expected"),
    [
        pytest.param("TermTooLow", 2, None, True, id="its agent has forgotten it"),
        pytest.param("NotHere", 2, None, True, id="its agent does not have it"),
        pytest.param("TermTooLow", 1, None, False, id="the workload has no later attempt"),
        pytest.param("Accepted", 2, None, False, id="its agent has not refused it"),
        pytest.param("TermTooLow", 2, 1, False, id="it is reported"),
        pytest.param("Accepted", 1, 2, True, id="its agent has a later one"),
    ],
)
def test_a_restored_hub_leaves_no_work_of_an_earlier_attempt_for_an_agent_without_memory(
    reason: str, last: int, reported: int | None, expected: bool
) -> None:
    found = gang(pods("a"))
    work = refused(sent(found)["a"], reason)
    history = [{"attempt": last, "clusters": ["b"], "endedAt": "2027-01-15T08:00:00Z"}]
    later = workload({"phase": "Waiting", "history": history if last > 1 else []})
    state = None
    if reported is not None:
        state = WorkState(work=work.metadata.name, attempt=reported, phase="Running")
    assert is_past(work, state, later) is expected
