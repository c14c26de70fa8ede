"""`fairway plan`: `--explain`, on the stories in examples/plans; what it refuses; and `--now`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairway.api.errors import ApiError
from fairway.cli.main import run
from fairway.client import Client
from tests.builders import H100, cluster, flavor, policy, queue, workload

PLANS = Path(__file__).parents[2] / "examples" / "plans"
NOW = "1794729600"  # 2026-11-15 08:00 UTC


def told(capsys: pytest.CaptureFixture[str], story: str, *words: str) -> tuple[int, str, str]:
    code = run(["plan", "-f", str(PLANS / story), "--now", NOW, *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_one_workload_is_explained_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "why-waiting", "--explain", "vision/too-much")
    assert code == 0
    assert out == (
        "vision/too-much can never start: queue research can never get this much: it needs"
        " 8 more h100 GPUs than its quota and all that it can borrow.\n"
    )


def test_nodes_in_doubt_are_warned_of(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    objects = [
        flavor("h100"),
        flavor("fast", nodeLabels={"net": "fast"}),
        queue("q", quotas={"h100": 8, "fast": 8}),
        cluster("west", 8, extra={"net": "fast"}),
        workload("a", "q"),
    ]
    (tmp_path / "fleet.json").write_text("\n---\n".join(json.dumps(object_) for object_ in objects))
    code, out, _ = told(capsys, str(tmp_path))
    warning = (
        "west: 1 node has both flavors fast and h100 of one resource group, and is used for neither"
    )
    assert code == 0
    assert out.endswith(f"\nWarnings:\n  {warning}\n")
    _, out, _ = told(capsys, str(tmp_path), "-o", "json")
    assert [warning["message"] for warning in json.loads(out)["warnings"]] == [warning]


def test_programs_get_the_explanation_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "why-waiting", "--explain", "vision/too-wide", "-o", "json")
    found = json.loads(out)
    assert code == 0
    assert (found["state"], found["position"]) == ("Waits", 1)
    assert found["nearest"] == {
        "cluster": "hangzhou-1",
        "free": "16",
        "short": "8",
        "flavor": "h100",
    }


def test_a_workload_that_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, "why-waiting", "--explain", "vision/nobody")
    assert (code, out) == (1, "")
    assert "no workload vision/nobody in the files given" in err


def planned(
    capsys: pytest.CaptureFixture[str], file: Path, *objects: dict[str, Any], now: str = NOW
) -> tuple[int, str, str]:
    """What `fairway plan` says of objects that a file holds."""
    file.write_text("\n---\n".join(json.dumps(object_) for object_ in objects))
    code = run(["plan", "-f", str(file), "--now", now])
    out, err = capsys.readouterr()
    return code, out, err


JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "job", "namespace": "default"},
    "spec": {
        "paralelism": 3,
        "template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}
        },
    },
}
ROLLOUT = {
    "apiVersion": "serving.fairway.dev/v1alpha1",
    "kind": "Rollout",
    "metadata": {"name": "r", "namespace": "default"},
    "spec": {"workload": {"kind": "Workload", "name": "w"}, "wrokload": "w"},
}
UNKNOWN = ("spec.wieght", "spec.wrokload", "spec.paralelism")
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown field": (
        queue("q", 8, wieght=2),
        'Queue q: spec.wieght: Forbidden: unknown field, did you mean "weight"?',
    ),
    "an unknown field of another group of ours": (
        ROLLOUT,
        'Rollout default/r: spec.wrokload: Forbidden: unknown field, did you mean "workload"?',
    ),
    "an unknown field of a native kind": (
        JOB,
        (
            'Job default/job: Job in version "v1" cannot be handled as a Job: strict decoding'
            ' error: unknown field "spec.paralelism", did you mean "parallelism"?'
        ),
    ),
    "a value out of range": (
        queue("q", 8, waitingWorkloadsMax=-1),
        (
            "Queue q: spec.waitingWorkloadsMax: Invalid value: -1: spec.waitingWorkloadsMax in body"
            " should be greater than or equal to 0"
        ),
    ),
    "a value of another type": (
        workload("w", "q", priority="high"),
        (
            'Workload team/w: spec.priority: Invalid value: "string": spec.priority in body must'
            ' be of type integer: "string"'
        ),
    ),
    "a rule over several fields": (
        queue("q", 8, parent="q"),
        "Queue q: Invalid value: a queue is not its own parent",
    ),
    "an expression that does not compile": (
        policy("p", ["a"])
        | {"spec": {"groups": [{"name": "g", "selector": {"expressions": ["cluster.na ="]}}]}},
        "PlacementPolicy fairway-system/p: spec.groups[0].selector.expressions[0]: Invalid value:",
    ),
    "a name that is none": (
        queue("A Queue", 8),
        'Queue A Queue: metadata.name: Invalid value: "A Queue":',
    ),
}


@pytest.mark.parametrize(("object_", "line"), REFUSED.values(), ids=REFUSED)
def test_a_plan_refuses_what_a_hub_refuses_and_in_the_same_words(
    object_: dict[str, Any],
    line: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    client: Client,
) -> None:
    file = tmp_path / "fleet.json"
    code, out, err = planned(capsys, file, H100, object_)
    assert (code, out) == (1, "")
    heading, *faults = err.splitlines()
    assert heading == "error: a hub would not accept these objects:"
    assert len(faults) == 1, faults
    assert faults[0].startswith(f"  {file}:3: {line}")
    with pytest.raises(ApiError) as refusal:
        client.create(object_)
    unknown = [f'unknown field "{field}"' for field in UNKNOWN if field in line]
    causes = refusal.value.details.get("causes") or [{"message": refusal.value.message}]
    assert faults[0].endswith(causes[0]["message"]) or unknown[0] in refusal.value.message


def test_every_fault_of_every_object_is_a_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    wrong = queue("q", 8, wieght=2, waitingWorkloadsMax=-1)
    file = tmp_path / "fleet.json"
    _, _, err = planned(capsys, file, H100, wrong, workload("w", "q", prority=3))
    places = [": ".join(line.split(": ")[:3]).strip() for line in err.splitlines()[1:]]
    assert places == [
        f"{file}:3: Queue q: spec.waitingWorkloadsMax",
        f"{file}:3: Queue q: spec.wieght",
        f"{file}:5: Workload team/w: spec.prority",
    ]


def test_a_kind_that_is_not_ours_but_says_so_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    misspelt = queue("q", 8) | {"kind": "Queu"}
    code, _, err = planned(capsys, tmp_path / "fleet.json", H100, misspelt)
    assert code == 1
    assert err.endswith(
        "Queu q: there is no kind fairway.dev/v1alpha1 Queu,"
        " did you mean fairway.dev/v1alpha1 Queue?\n"
    )


def test_a_claim_with_a_fault_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    running = workload("w", "q", running="east")
    running["status"]["claim"]["atempt"] = 1
    code, _, err = planned(capsys, tmp_path / "fleet.json", H100, queue("q", 8), running)
    assert code == 1
    assert "Workload team/w: status.claim.atempt: Forbidden: unknown field" in err


def test_an_object_that_a_hub_has_stored_is_read_whatever_it_says(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A snapshot of a newer hub, or from before a rule, can be read."""
    stored = queue("q", 8, laterField=2)
    stored["metadata"]["uid"] = "6d2a"
    objects = (H100, stored, cluster("east", 8), workload("w", "q"))
    code, out, err = planned(capsys, tmp_path / "fleet.json", *objects)
    assert (code, err) == (0, "")
    assert "Admit" in out


def test_a_kind_that_the_files_define_is_checked_by_its_definition(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "sweeps.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "sweeps", "singular": "sweep", "kind": "Sweep"},
            "versions": [version],
        },
    }
    sweep = {
        "apiVersion": "example.com/v1",
        "kind": "Sweep",
        "metadata": {"name": "s", "namespace": "team"},
        "spec": {"n": 0},
    }
    code, _, err = planned(capsys, tmp_path / "fleet.json", sweep, definition)
    assert code == 1
    assert "Sweep team/s: spec.n: Invalid value: 0:" in err


def test_an_object_in_a_change_is_checked_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    edit = tmp_path / "edit.json"
    edit.write_text(json.dumps({"apply": [queue("q", 8, wieght=2)]}))
    code, _, err = told(capsys, "why-waiting", "--if", str(edit))
    assert code == 1
    assert f"{edit}:1: Queue q: spec.wieght: Forbidden: unknown field" in err


@pytest.fixture
def in_chatham(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A time zone that no other test has: thirteen and three quarter hours before UTC."""
    monkeypatch.setenv("TZ", "Pacific/Chatham")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_chatham")
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1794729600", 1794729600.0),
        ("1794729600.5", 1794729600.5),
        ("2026-11-15T08:00:00Z", 1794729600.0),
        ("2026-11-15T16:00:00+08:00", 1794729600.0),
        ("2026-11-15T08:00:00.5Z", 1794729600.5),
        ("2026-11-15 21:45", 1794729600.0),  # as commands show times: in the local zone
        ("2026-11-15 21:45:00", 1794729600.0),
        ("2026-11-15", 1794729600.0 - 21.75 * 3600),
    ],
)
def test_the_moment_of_a_plan_is_a_time_or_seconds(
    text: str, seconds: float, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["plan", "-f", str(PLANS / "why-waiting"), "--now", text, "-o", "json"])
    assert (code, json.loads(capsys.readouterr().out)["now"]) == (0, seconds)


@pytest.mark.parametrize("text", ["tomorrow", "nan", "1e9", "-5", "99999999999999", "25:00"])
def test_what_is_no_time_is_refused_with_the_forms_that_are(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["plan", "-f", str(PLANS / "why-waiting"), f"--now={text}"])
    assert code == 1
    assert (
        f"Invalid value for '--now': {text!r} is not a time; write 2026-11-15T08:00:00Z"
        in capsys.readouterr().err
    )
