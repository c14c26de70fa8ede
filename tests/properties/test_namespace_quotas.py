"""Generated fleets whose clusters have quotas and defaults for namespaces: what always holds."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.allowances import Admission, Allowance, AllowanceKey
from fairway.core.model import Placed, Shape, Workload
from fairway.core.snapshot import Facts
from tests.properties.checks import Peace, cases, check_same, planned
from tests.properties.fleets import CPU, GPU, chance, noted_fleet, seeds

NAMESPACES = ("one", "two")


def ruled(facts: Facts, dice: Random) -> Facts:
    """The fleet with quotas in some clusters, that hold what runs there or a little less."""
    keys = {
        name: [
            AllowanceKey(namespace, "q", resource)
            for namespace in NAMESPACES
            for resource in (f"requests.{GPU}", "pods")
            if chance(dice, 4)
        ]
        for name in sorted(facts.clusters)
    }
    added = {name: dice.choice([(), (), ((CPU, 500),)]) for name in keys}
    spaces = {key: dice.choice(NAMESPACES) for key in sorted(facts.workloads)}

    def shape_of(shape: Shape, namespace: str) -> Shape:
        amounts = {f"requests.{GPU}": dict(shape.requests).get(GPU, 0), "pods": 1000}
        admitted = tuple(
            (
                name,
                Admission(
                    added=added[name],
                    takes=tuple(
                        (key, amounts[key.resource])
                        for key in keys[name]
                        if key.namespace == namespace and amounts[key.resource]
                    ),
                ),
            )
            for name in keys
        )
        return replace(shape, admitted=admitted)

    def place(placed: Placed, namespace: str) -> Placed:
        pods = (replace(pod, shape=shape_of(pod.shape, namespace)) for pod in placed.pods)
        return replace(placed, pods=tuple(pods))

    def ruled_workload(workload: Workload) -> Workload:
        namespace, held = spaces[workload.key], workload.held
        forms = tuple(
            replace(
                form,
                pod_sets=tuple(
                    replace(pods, shape=shape_of(pods.shape, namespace)) for pods in form.pod_sets
                ),
            )
            for form in workload.forms
        )
        return replace(
            workload,
            forms=forms,
            held=held
            and replace(held, placed=tuple(place(item, namespace) for item in held.placed)),
            releasing=tuple(place(item, namespace) for item in workload.releasing),
        )

    clusters = {
        name: replace(
            cluster,
            allowances={
                key: Allowance(hard=9000, left=dice.choice([0, 2000, 4000, 9000]))
                for key in keys[name]
            },
        )
        for name, cluster in facts.clusters.items()
    }
    workloads = {key: ruled_workload(workload) for key, workload in facts.workloads.items()}
    return replace(facts, clusters=clusters, workloads=workloads)


@cases(60)
@given(seeds(), st.integers(0, 2**16))
def test_plans_within_quotas_of_namespaces_keep_all_invariants_and_come_to_rest(
    seed: int, rules: int
) -> None:
    limited = ruled(noted_fleet(seed), Random(rules))
    Peace(limited).come_to_rest()
    check_same(limited, planned(limited))
