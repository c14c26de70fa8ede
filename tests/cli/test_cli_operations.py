"""Interventions, on a hub that keeps objects and decides nothing; and what tables look like."""

from __future__ import annotations

import json

import pytest
from cli_outcome import Fairway
from manifests_for_tests import job

from fairway.api.cluster import Cluster
from fairway.api.codec import decode
from fairway.api.flavor import Flavor
from fairway.api.report import ClusterReport
from fairway.cli import queue_tree, workloads
from fairway.cli.capacity import rooms
from fairway.cli.render_table import plain_layout, plain_lines
from fairway.cli.why import lines
from fairway.client import Client

FLEET = {"apiVersion": "fairway.dev/v1alpha1"}


def made(
    client: Client, kind: str, name: str, spec: dict[str, object], namespace: str = ""
) -> None:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    client.create({**FLEET, "kind": kind, "metadata": metadata, "spec": spec})


WORKLOAD = {"podSets": [{"name": "worker", "count": 1}], "queue": "lab"}


def test_clusters_are_cordoned_drained_and_uncordoned(fairway: Fairway, client: Client) -> None:
    made(client, "Cluster", "east", {"local": {}})
    assert fairway("cordon", "east").out == "cluster.fairway.dev/east cordoned\n"
    assert fairway("cordon", "east").out == "cluster.fairway.dev/east already cordoned\n"
    assert fairway("drain", "east", "--no-wait").out == "cluster.fairway.dev/east drained\n"
    assert client.get("clusters", "east")["spec"]["hold"] == "HoldAndDrain"
    assert fairway("uncordon", "east").out == "cluster.fairway.dev/east uncordoned\n"
    assert client.get("clusters", "east")["spec"]["hold"] == "None"
    missing = fairway("cordon", "nowhere")
    assert missing.code == 1
    assert missing.err.startswith("Error from server (NotFound)")


def test_queues_and_workloads_are_held_and_released(
    fairway: Fairway, client: Client, namespace: str
) -> None:
    made(client, "Queue", "lab", {})
    made(client, "Workload", "train", WORKLOAD, namespace)
    held = fairway("hold", "queue/lab", "wl/train", "--drain")
    assert held.out == "queue.fairway.dev/lab held\nworkload.fairway.dev/train held\n"
    assert client.get("queues", "lab")["spec"]["hold"] == "HoldAndDrain"
    assert fairway("release", "queue/lab").out == "queue.fairway.dev/lab released\n"
    assert fairway("hold", "queues").code == 1


def test_priority_and_queue_of_a_workload_change_while_it_waits(
    fairway: Fairway, client: Client, namespace: str
) -> None:
    made(client, "Queue", "other", {})
    made(client, "Workload", "train", WORKLOAD, namespace)
    assert fairway("priority", "train", "100").out == (
        "workload.fairway.dev/train has priority 100\n"
    )
    assert fairway("move", "train", "--queue", "other").out == (
        "workload.fairway.dev/train moved to queue other\n"
    )
    spec = client.get("workloads", "train", namespace=namespace)["spec"]
    assert (spec["priority"], spec["queue"]) == (100, "other")
    assert fairway("move", "train", "--queue", "none").err == "error: there is no queue none\n"
    assert fairway("priority", "train", "--", "-5").code == 0


def test_what_stands_for_a_native_object_is_changed_there(
    fairway: Fairway, client: Client, namespace: str
) -> None:
    fairway("apply", "-f", "-", stdin=job("eval", "true"))
    source = {"apiVersion": "batch/v1", "kind": "Job", "name": "eval"}
    made(client, "Workload", "job-eval", {**WORKLOAD, "source": source}, namespace)
    assert fairway("priority", "job/eval", "9").out == "job.batch/eval has priority 9\n"
    labels = client.get("jobs", "eval", namespace=namespace)["metadata"]["labels"]
    assert labels["fairway.dev/priority"] == "9"
    assert fairway("suspend", "eval").out == "workload.fairway.dev/job-eval suspended\n"


def test_services_are_rebalanced_by_name_by_label_or_all(
    fairway: Fairway, client: Client, namespace: str
) -> None:
    service = {**WORKLOAD, "mode": "Divided", "replicas": 2}
    for name in ("chat", "search"):
        made(client, "Workload", name, service, namespace)
    made(client, "Workload", "train", WORKLOAD, namespace)
    chat = "workload.fairway.dev/chat will be rebalanced"
    assert fairway("rebalance", "chat").out == f"{chat}\n"
    assert client.get("workloads", "chat", namespace=namespace)["spec"]["rebalanceAt"]
    client.patch("workloads", "chat", {"metadata": {"labels": {"a": "b"}}}, namespace=namespace)
    assert fairway("rebalance", "-l", "a=b").out == f"{chat}\n"
    assert fairway("rebalance", "--all", "--dry-run", "server").out.splitlines() == [
        f"{chat} (server dry run)",
        f"{chat.replace('chat', 'search')} (server dry run)",
    ]
    assert "rebalanceAt" not in client.get("workloads", "search", namespace=namespace)["spec"]
    refused = fairway("rebalance", "train")
    assert refused.code == 1
    assert "train has no replicas to divide" in refused.err
    assert "say which ones" in fairway("rebalance").err
    assert fairway("rebalance", "-l", "a=c").out == "No services found.\n"


def test_the_fleet_is_paused_with_a_reason(fairway: Fairway, client: Client) -> None:
    assert fairway("pause", "--reason", "a new switch").out == "fleet.fairway.dev/fleet paused\n"
    assert client.get("fleets", "fleet")["spec"]["pauseReason"] == "a new switch"
    assert fairway("unpause").out == "fleet.fairway.dev/fleet unpaused\n"
    assert client.get("fleets", "fleet")["spec"].get("paused", False) is False


def test_a_submission_without_a_queue_says_what_is_missing(fairway: Fairway) -> None:
    outcome = fairway("submit", "-", stdin=job("train", "true"))
    assert outcome.code == 1
    assert outcome.err.startswith("error: say which queue, with --queue QUEUE")


def test_a_manifest_that_runs_nothing_is_not_submitted(fairway: Fairway) -> None:
    settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    outcome = fairway("submit", "-", "-q", "lab", stdin=settings)
    assert outcome.err.startswith("error: nothing here runs: ConfigMap is no Workload")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["submit"], "Say which files.", id="submit without files"),
        pytest.param(["run", "-q", "lab"], "Say what to run, after --.", id="run without command"),
        pytest.param(
            ["run", "--env", "A", "--", "true"], "--env: 'A' is not KEY=VALUE", id="a bad variable"
        ),
    ],
)
def test_misuse_of_submit_and_run_has_an_exit_code_of_its_own(
    fairway: Fairway, words: list[str], said: str
) -> None:
    outcome = fairway(*words)
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: {said}")


def test_a_hub_that_decides_nothing_says_so(fairway: Fairway) -> None:
    outcome = fairway("queue")
    assert outcome.code == 1
    assert outcome.err == "Error from server (ServiceUnavailable): this hub makes no decisions\n"


def test_a_file_that_is_no_record_is_refused(fairway: Fairway, tmp_path: object) -> None:
    assert "does not exist" in fairway("snapshot", "replay", f"{tmp_path}/none").err
    assert "there is no record" in fairway("snapshot", "replay", str(tmp_path)).err


# What tables and sentences look like.

HOLDING = {"flavor": "h100", "resource": "nvidia.com/gpu", "borrowed": "0", "lent": "0"}
QUEUES = [
    {
        "queue": "company",
        "parent": "",
        "waiting": 3,
        "running": 2,
        "share": None,
        "holdings": [
            {**HOLDING, "nominal": "32", "used": "20"},
            {**HOLDING, "flavor": "a100", "nominal": "8", "used": "0"},
        ],
    },
    {
        "queue": "research",
        "parent": "company",
        "waiting": 1,
        "running": 2,
        "share": 250,
        "holdings": [
            {**HOLDING, "nominal": "16", "used": "20", "borrowed": "4"},
            {**HOLDING, "flavor": "any", "resource": "cpu", "nominal": "8", "used": "1"},
            {**HOLDING, "resource": "rdma/hca", "nominal": "8", "used": "1"},
        ],
        "heads": ["vision/train", "vision/eval"],
    },
    {"queue": "vision", "parent": "research", "waiting": 0, "running": 0, "share": 0},
    {"queue": "serving", "parent": "company", "waiting": 2, "running": 0, "share": 0},
]


def drawn(queues: list[dict[str, object]]) -> list[str]:
    grid = queue_tree.grid(queues)
    return plain_lines(grid, plain_layout(grid))


def test_queues_are_drawn_as_a_tree() -> None:
    assert drawn(QUEUES) == [
        (
            "QUEUE          WAITING   RUNNING   SHARE   FLAVOR   RESOURCE         NOMINAL   USED"
            "   BORROWED   LENT   NEXT"
        ),
        (
            "company        3         2         ∞       h100     nvidia.com/gpu   32        20"
            "     0          0"
        ),
        (
            "│                                          a100     nvidia.com/gpu   8         0"
            "      0          0"
        ),
        (
            "├─ research    1         2         0.25    h100     nvidia.com/gpu   16        20"
            "     4          0      vision/train"
        ),
        "│  └─ vision   0         0         0.00",
        "└─ serving     2         0         0.00",
    ]


def test_one_queue_is_drawn_with_those_below_it() -> None:
    names = [line.split("  ")[0] for line in drawn(queue_tree.below(QUEUES, "research"))[1:]]
    assert names == ["research", "└─ vision"]


EXPLAINED = {
    "now": 0.0,
    "workload": "vision/train",
    "state": "Waits",
    "queue": "research",
    "needs": {"amount": "16", "of": "h100"},
    "nearest": {"cluster": "site", "free": "12", "short": "4"},
    "position": 2,
    "waiting": 5,
    "reasons": [
        {"code": "DoesNotFit", "rung": "Idle", "message": "site: 4 pods too many of h100"},
        {"code": "NoVictims", "rung": "Preempt", "message": "site: nobody it may preempt"},
        {"code": "NoVictims", "rung": "Preempt", "message": "site: nobody it may preempt"},
    ],
    "remedies": [{"kind": "FewerPods", "message": "starts now with 12 × h100"}],  # noqa: RUF001 - as it is printed
}


def test_an_explanation_names_needs_position_reasons_and_remedies() -> None:
    workload = {"metadata": {"name": "train"}, "spec": {}}
    assert [str(line) for line in lines(workload, EXPLAINED)] == [
        "train waits in queue research.",
        "",
        "  Needs     16 × h100",  # noqa: RUF001 - as it is printed
        "  Nearest   site, 12 free (4 short)",
        "  Position  2 of 5",
        "",
        "What was tried:",
        "  Idle",
        "    - site: 4 pods too many of h100",
        "  Preempt",
        "    - site: nobody it may preempt",
        "",
        "What would help:",
        "  - it starts now with 12 × h100",  # noqa: RUF001 - as it is printed
    ]


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (
            {"start": 3600.0, "earliest": 3000.0, "latest": 4200.0, "because": "vision/a"},
            "± 10m, when vision/a ends",
        ),
        (
            {"start": 3600.0, "earliest": 3000.0, "because": "vision/a"},
            "or later, when vision/a ends",
        ),
        (
            {"start": 3600.0, "because": "vision/a", "isGuess": True},
            "when vision/a ends (a guess: not all run times are known)",
        ),
    ],
    ids=["with its range", "with one end of it open", "as a guess"],
)
def test_an_expected_start_is_said(expected: dict[str, object], said: str) -> None:
    workload = {"metadata": {"name": "train"}, "spec": {}}
    told = [str(line) for line in lines(workload, EXPLAINED | {"expected": expected})]
    (line,) = [line for line in told if line.startswith("  Expected")]
    assert line.endswith(said)
    assert ("±" in line) == ("latest" in expected)


def test_another_flavor_of_the_nearest_cluster_is_named() -> None:
    workload = {"metadata": {"name": "train"}, "spec": {}}
    nearest = {"cluster": "site", "free": "12", "short": "4", "flavor": "a100"}
    told = [str(line) for line in lines(workload, EXPLAINED | {"nearest": nearest})]
    assert "  Nearest   site, 12 a100 free (4 short)" in told


def test_an_explanation_of_what_runs_names_the_rules_it_breaks() -> None:
    status = {"phase": "Running", "claim": claimed(), "pods": {"wanted": 1, "ready": 1}}
    workload = {"metadata": {"name": "train"}, "spec": {}, "status": status}
    rule = "fleet policy p does not allow site: rule clusters"
    reasons = [{"code": "ClusterForbidden", "policy": "p", "message": rule}]
    first, *others = lines(workload, {"state": "Runs", "reasons": reasons})
    assert str(first).startswith("train runs in site")
    assert others == [f"  - {rule}"]


def claimed(**more: object) -> dict[str, object]:
    return {"placements": [{"cluster": "site"}], **more}


@pytest.mark.parametrize(
    ("status", "line"),
    [
        pytest.param({}, "waits in queue lab", id="a new one waits"),
        pytest.param(
            {
                "phase": "Claimed",
                "pods": {"wanted": 4, "ready": 1},
                "claim": claimed(
                    waitsFor=[
                        {"type": "Preemption", "workload": {"name": "old"}},
                        {"type": "Provision", "pool": "spot", "count": 2},
                    ]
                ),
            },
            "starts in site, 1 of 4 pods ready, when old is gone and 2 nodes of spot come",
            id="one that waits for victims and nodes",
        ),
        pytest.param(
            {
                "phase": "Running",
                "pods": {"wanted": 2, "ready": 1, "succeeded": 1},
                "claim": claimed(missingCopies=1),
                "succeededClusters": ["east"],
            },
            "runs in site, 2 of 2 pods ready, 1 of 3 copies succeeded",
            id="one with a copy in each of several clusters",
        ),
        pytest.param(
            {"phase": "Waiting", "reason": "DoesNotFit", "succeededClusters": ["east", "site"]},
            "waits in queue lab, 2 copies succeeded: DoesNotFit",
            id="one of which some copies are over, and others wait",
        ),
        pytest.param(
            {"phase": "Stopping", "reason": "Drained", "releasing": [{"cluster": "site"}]},
            "stops in site: Drained",
            id="one that stops",
        ),
        pytest.param(
            {"phase": "Failed", "message": "out of memory", "history": [{"exitCode": 137}]},
            "failed with exit code 137: out of memory",
            id="one that failed",
        ),
        pytest.param(
            {
                "phase": "Succeeded",
                "startedAt": "2026-01-01T00:00:00Z",
                "finishedAt": "2026-01-01T00:05:00Z",
            },
            "succeeded after 5m",
            id="one that succeeded",
        ),
    ],
)
def test_what_a_workload_does_is_told_in_a_line(status: dict[str, object], line: str) -> None:
    workload = {"metadata": {"name": "train"}, "spec": {"queue": "lab"}, "status": status}
    assert workloads.line(workload) == line


def test_a_service_that_runs_is_settled_but_copies_that_end_are_not() -> None:
    service = {"spec": {"mode": "Divided"}, "status": {"phase": "Running", "claim": claimed()}}
    assert workloads.is_settled(service)
    copies = {**service, "status": {"phase": "Running", "claim": claimed(missingCopies=0)}}
    assert not workloads.is_settled(copies)


def test_room_is_counted_by_flavor_with_what_pods_and_others_use() -> None:
    cluster = decode(
        {
            "metadata": {"name": "site"},
            "spec": {
                "simulated": {},
                "profile": {"resources": {"nvidia.com/gpu": "vendor.example/gpu"}},
                "elasticPools": [
                    {
                        "name": "more",
                        "shape": {"nvidia.com/gpu": "8"},
                        "labels": {"gpu": "h100"},
                        "countMax": 4,
                        "stock": 2,
                    }
                ],
            },
        },
        Cluster,
    )
    report = decode(
        {
            "metadata": {"name": "site-0"},
            "spec": {
                "cluster": "site",
                "agentEpoch": 1,
                "sequence": 1,
                "seenAt": "2026-01-01T00:00:00Z",
                "nodes": {
                    "names": ["a", "b", "c"],
                    "unready": [2],
                    "labels": [{"key": "gpu", "values": ["h100", "h100", "l4"]}],
                    "amounts": [
                        {
                            "resource": "vendor.example/gpu",
                            "unit": "1",
                            "allocatable": [8, 8, 4],
                            "others": [0, 1, 0],
                        },
                        {"resource": "rdma/hca", "unit": "1", "allocatable": [1, 1, 1]},
                    ],
                },
                "works": [
                    {
                        "work": "vision.train",
                        "podSet": "worker",
                        "requests": {"vendor.example/gpu": "2"},
                        "bound": {"nodes": [0], "counts": [3]},
                    }
                ],
            },
        },
        ClusterReport,
    )
    flavors = [
        decode({"metadata": {"name": name}, "spec": {"nodeLabels": {"gpu": name}}}, Flavor)
        for name in ("h100", "l4")
    ]
    found = [
        (
            room.flavor,
            room.nodes,
            *map(room.show, (room.total, room.used, room.free, room.to_come)),
        )
        for room in rooms([cluster], [report], flavors)
    ]
    assert found == [("h100", 2, "16", "7", "9", "16"), ("l4", 1, "0", "0", "0", "0")]


def test_wide_and_plain_tables_of_workloads_have_the_columns_people_ask_for(
    fairway: Fairway, client: Client, namespace: str
) -> None:
    made(client, "Workload", "train", WORKLOAD, namespace)
    shown = fairway("get", "workloads").out.splitlines()[0].split()
    assert shown == [
        "NAME", "QUEUE", "MODE", "PHASE", "REASON", "CLUSTERS", "PODS", "READY", "AGE",
    ]  # fmt: skip
    assert json.loads(fairway("get", "wl", "train", "-o", "json").out)["kind"] == "Workload"
