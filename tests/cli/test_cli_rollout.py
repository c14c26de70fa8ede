"""`fairway rollout`, on a hub that keeps objects and decides nothing."""

from __future__ import annotations

from typing import Any

import pytest
from cli_outcome import Fairway

from fairway.api.errors import NotFound
from fairway.client import Client

MARKS = {1: "aaaaaaaaaa", 2: "bbbbbbbbbb", 3: "cccccccccc"}


def deployment(image: str, replicas: int = 3) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "llm"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "llm"}},
            "template": {
                "metadata": {"labels": {"app": "llm"}},
                "spec": {"containers": [{"name": "server", "image": image}]},
            },
        },
    }


def status(phase: str, **more: Any) -> dict[str, Any]:
    return {
        "observedGeneration": 99,
        "workloadGeneration": 99,
        "phase": phase,
        "revision": 3,
        "target": MARKS[3],
        "stable": MARKS[2],
        "stableRevision": 2,
        "currentBatch": 0,
        "batches": 2,
        "replicas": 8,
        "updated": 1,
        "ready": 8,
        "history": [
            {"revision": number, "mark": mark, "outcome": "Completed" if number < 3 else ""}
            for number, mark in MARKS.items()
        ],
        "clusters": [
            {"cluster": "beijing", "group": "home", "revision": 2, "mark": MARKS[2],
             "replicas": 4, "updated": 4, "ready": 4, "available": 4},
            {"cluster": "shanghai", "revision": 3, "mark": MARKS[3],
             "replicas": 4, "share": 1, "updated": 1, "ready": 1, "available": 4},
        ],
        **more,
    }  # fmt: skip


@pytest.fixture
def rollout(client: Client, namespace: str) -> Any:
    """A service with three revisions; the call says what its Rollout says of itself."""
    group = "serving.fairway.dev/v1alpha1"
    client.create(
        {
            "apiVersion": "fairway.dev/v1alpha1",
            "kind": "Workload",
            "metadata": {"name": "llm", "namespace": namespace},
            "spec": {
                "mode": "Divided",
                "replicas": 8,
                "template": {"manifests": [deployment("vllm:3", replicas=5)]},
            },
        }
    )
    for number, mark in MARKS.items():
        client.create(
            {
                "apiVersion": group,
                "kind": "Revision",
                "metadata": {"name": f"llm-rollout-{mark}", "namespace": namespace},
                "spec": {
                    "workload": "llm",
                    "mark": mark,
                    "template": {"manifests": [deployment(f"vllm:{number}")]},
                },
            }
        )
    client.create(
        {
            "apiVersion": group,
            "kind": "Rollout",
            "metadata": {"name": "llm-rollout", "namespace": namespace},
            "spec": {"workload": {"name": "llm"}},
        }
    )

    def say(phase: str, **more: Any) -> None:
        client.patch(
            "rollouts",
            "llm-rollout",
            {"status": status(phase, **more)},
            namespace=namespace,
            subresource="status",
        )

    return say


def test_status_waits_until_it_is_over_and_tells_how_it_ended(
    fairway: Fairway, rollout: Any
) -> None:
    rollout("Progressing")
    going = fairway("rollout", "status", "llm", "--timeout", "1s")
    assert (going.code, going.err) == (1, "error: timed out waiting for the condition\n")
    assert going.out == (
        'Waiting for rollout "llm-rollout" to finish: batch 1 of 2, '
        "1 of 8 updated replicas are ready...\n"
    )
    rollout("Soaking", message="30 s to soak")
    soaking = fairway("rollout", "status", "llm", "--timeout", "1s")
    assert "(Soaking: 30 s to soak)" in soaking.out
    rollout("Completed")
    done = fairway("rollout", "status", "workload/llm")
    assert (done.code, done.out) == (0, 'rollout "llm-rollout" successfully rolled out\n')
    rollout(
        "RolledBack", failure="GateFailed", reason="GateFailed", message="gate errors: 0.5 is bad"
    )
    back = fairway("rollout", "status", "rollout/llm-rollout")
    assert back.code == 1
    assert back.out == (
        'rollout "llm-rollout" went back to revision 2: GateFailed: gate errors: 0.5 is bad\n'
    )


def test_status_does_not_take_the_end_of_an_earlier_version_for_this_one(
    fairway: Fairway, rollout: Any
) -> None:
    rollout("Completed", workloadGeneration=0)
    found = fairway("rollout", "status", "llm", "--timeout", "1s")
    assert (found.code, found.out) == (1, "")


def test_status_without_waiting_shows_clusters(fairway: Fairway, rollout: Any) -> None:
    rollout("Progressing")
    lines = fairway("rollout", "status", "llm", "--no-watch").out.splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["CLUSTER", "GROUP", "REVISION", "UPDATED", "READY"],
        ["beijing", "home", "2", "4/4", "4/4"],
        ["shanghai", "<none>", "3", "1/1", "4/4"],
    ]


def test_history_lists_revisions_and_shows_one(fairway: Fairway, rollout: Any) -> None:
    rollout("Progressing")
    listed = fairway("rollout", "history", "llm").out.splitlines()
    assert listed[0] == "rollout.serving.fairway.dev/llm-rollout"
    assert [item.split()[:3] for item in listed[1:]] == [
        ["REVISION", "OUTCOME", "MARK"],
        ["1", "Completed", MARKS[1]],
        ["2", "Completed", MARKS[2]],
        ["3", "UnderWay", MARKS[3]],
    ]
    assert "image: vllm:2" in fairway("rollout", "history", "llm", "--revision", "2").out
    missing = fairway("rollout", "history", "llm", "--revision", "9")
    assert (missing.code, missing.err) == (
        1,
        "error: rollout.serving.fairway.dev/llm-rollout keeps no revision 9 (it keeps: 1, 2, 3)\n",
    )


def test_pause_and_resume(fairway: Fairway, rollout: Any, client: Client, namespace: str) -> None:
    rollout("Progressing")
    label = "rollout.serving.fairway.dev/llm-rollout"
    assert fairway("rollout", "resume", "llm").err == f"error: {label} is not paused\n"
    assert fairway("rollout", "pause", "llm").out == f"{label} paused\n"
    assert fairway("rollout", "pause", "llm").err == f"error: {label} is already paused\n"
    assert client.get("rollouts", "llm-rollout", namespace=namespace)["spec"]["paused"] is True
    assert fairway("rollout", "resume", "llm").out == f"{label} resumed\n"
    rollout("Paused", failure="GateFailed", failures=2)
    assert fairway("rollout", "resume", "llm").out == f"{label} resumed\n"
    metadata = client.get("rollouts", "llm-rollout", namespace=namespace)["metadata"]
    assert metadata["annotations"]["serving.fairway.dev/resumed"] == "3.2"


def test_approve_is_for_the_batch_that_waits(
    fairway: Fairway, rollout: Any, client: Client, namespace: str
) -> None:
    rollout("Progressing")
    refused = fairway("rollout", "approve", "llm")
    assert refused.code == 1
    assert refused.err.endswith("does not wait for an approval: it is Progressing\n")
    rollout("AwaitingApproval", currentBatch=1)
    given = fairway("rollout", "approve", "llm")
    assert given.out == "rollout.serving.fairway.dev/llm-rollout batch 2 approved\n"
    metadata = client.get("rollouts", "llm-rollout", namespace=namespace)["metadata"]
    assert metadata["annotations"]["serving.fairway.dev/approved"] == "3.1"


def test_undo_gives_the_workload_an_earlier_template_and_keeps_its_counts(
    fairway: Fairway, rollout: Any, client: Client, namespace: str
) -> None:
    rollout("Progressing")
    label = "rollout.serving.fairway.dev/llm-rollout"

    def first() -> dict[str, Any]:
        found = client.get("workloads.fairway.dev", "llm", namespace=namespace)
        spec: dict[str, Any] = found["spec"]["template"]["manifests"][0]["spec"]
        return spec

    dry = fairway("rollout", "undo", "llm", "--dry-run=server")
    assert dry.out == f"{label} rolled back (server dry run)\n"
    assert first()["template"]["spec"]["containers"][0]["image"] == "vllm:3"
    assert fairway("rollout", "undo", "llm").out == f"{label} rolled back\n"
    assert first()["template"]["spec"]["containers"][0]["image"] == "vllm:2"
    assert first()["replicas"] == 5
    assert fairway("rollout", "undo", "llm", "--to-revision", "1").code == 0
    assert first()["template"]["spec"]["containers"][0]["image"] == "vllm:1"
    same = fairway("rollout", "undo", "llm", "--to-revision", "3")
    assert same.out.startswith(f"{label} skipped rollback")


def test_undo_of_a_native_object_changes_the_object(
    fairway: Fairway, rollout: Any, client: Client, namespace: str
) -> None:
    native = deployment("vllm:3", replicas=6)
    native["metadata"]["namespace"] = namespace
    client.create(native)
    source = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"}
    patch = {"spec": {"source": source}}
    client.patch("workloads.fairway.dev", "llm", patch, namespace=namespace)
    rollout("Progressing")
    assert fairway("rollout", "undo", "llm").code == 0
    found = client.get("deployments", "llm", namespace=namespace)
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "vllm:2"
    assert found["spec"]["replicas"] == 6


def test_a_service_without_a_rollout_is_told_so(fairway: Fairway) -> None:
    missing = fairway("rollout", "status", "deployment/web")
    assert missing.code == 1
    assert missing.err.startswith("error: there is no Rollout for deployment/web")


def test_the_feed_of_traffic_is_served_as_openapi_says(busy_client: Client) -> None:
    feed = busy_client.ask("fleets.fairway.dev", "fleet", "traffic")
    assert set(feed) == {"now", "services"}
    with pytest.raises(NotFound):
        busy_client.ask("workloads.fairway.dev", "nobody", "traffic", namespace="default")
    document = busy_client.fetch("/openapi/v3/apis/fairway.dev/v1alpha1")
    root = "/apis/fairway.dev/v1alpha1"
    one = f"{root}/namespaces/{{namespace}}/workloads/{{name}}/traffic"
    assert {one, f"{root}/fleets/{{name}}/traffic"} <= set(document["paths"])
