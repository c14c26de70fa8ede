"""Pods of a local cluster are processes, and behave as a kubelet's."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fairway.agent.drivers.interface import LogQuery, Observation, PodSeen
from fairway.api.work import Stop, Work
from tests.agent.local.machines import (
    QUICK,
    LocalRig,
    Plain,
    machine,
    phase_of,
    pod,
    program,
    running,
    shared,
)
from tests.contracts.drivers import config_map, has_no_pods, job, work
from tests.waiting import PATIENCE_SECONDS


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[LocalRig]:
    async with machine(tmp_path) as opened:
        yield opened


async def run(rig: LocalRig, *manifests: Plain) -> tuple[Work, PodSeen, str]:
    """Runs a pod to its end; the pod, and what it wrote."""
    one = work("one", *manifests)
    await rig.driver.apply(one)
    seen = await rig.until(is_over(one), "the end of the pod")
    return one, seen.works[one.metadata.name].pods[0], await output(rig, one)


def is_over(one: Work) -> Callable[[Observation], bool]:
    return lambda seen: phase_of(seen, one) in ("Succeeded", "Failed")


def is_ready(one: Work) -> Callable[[Observation], bool]:
    return lambda seen: phase_of(seen, one) == "Ready"


async def output(rig: LocalRig, one: Work, **query: object) -> str:
    asked = LogQuery(work=one.metadata.name, **query)  # type: ignore[arg-type]
    return b"".join([part async for part in rig.driver.logs(asked)]).decode()


async def first_line(rig: LocalRig, one: Work) -> str:
    """Follows the output until there is a line of it."""
    told = b""
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for part in rig.driver.logs(LogQuery(work=one.metadata.name, follow=True)):
            told += part
            if b"\n" in told:
                break
    return told.decode().splitlines()[0]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


@pytest.mark.parametrize(
    ("command", "phase", "code", "reason"),
    [
        pytest.param(("true",), "Succeeded", 0, "Completed", id="success"),
        pytest.param(("sh", "-c", "exit 7"), "Failed", 7, "Error", id="failure"),
        pytest.param(("sh", "-c", "kill -9 $$$$"), "Failed", 137, "Error", id="ended by a signal"),
        pytest.param(("no-such-program",), "Failed", 128, "StartError", id="no such program"),
    ],
)
async def test_the_end_of_a_process_is_the_end_of_its_pod(
    rig: LocalRig, command: tuple[str, ...], phase: str, code: int, reason: str
) -> None:
    _, seen, _ = await run(rig, pod("one", *command))
    assert (seen.phase, seen.exit_code, seen.reason) == (phase, code, reason)
    assert seen.finished_at is not None


async def test_the_environment_is_resolved_as_a_kubelet_does(rig: LocalRig) -> None:
    settings = config_map("settings", colour="red", LEVEL="3")
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "keys", "namespace": "default"},
        "data": {"token": "aHVzaA=="},
    }
    env = [
        {"name": "PLAIN", "value": "a b; $HOME"},
        {"name": "BOTH", "value": "$(PLAIN)/$(MISSING)/$$(PLAIN)"},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "ROLE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['role']"}}},
        {
            "name": "COLOUR",
            "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "colour"}},
        },
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
        {
            "name": "LIMIT",
            "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}},
        },
    ]
    one = pod(
        "one",
        *program("import os, json, sys; print(json.dumps([dict(os.environ), sys.argv[1:]]))"),
        "$(NAME)",
        "$(COLOUR) $$(COLOUR)",
        env=env,
        resources={"memory": "64Mi"},
        container={"envFrom": [{"prefix": "SET_", "configMapRef": {"name": "settings"}}]},
    )
    one["metadata"]["labels"] = {"role": "worker"}
    os.environ["SECRET_OF_THE_HUB"] = "yes"
    try:
        _, _, told = await run(rig, settings, secret, one)
    finally:
        del os.environ["SECRET_OF_THE_HUB"]
    found, arguments = json.loads(told)
    expected = {
        "PLAIN": "a b; $HOME",
        "BOTH": "a b; $HOME/$(MISSING)/$(PLAIN)",
        "NAME": "one",
        "ROLE": "worker",
        "COLOUR": "red",
        "TOKEN": "hush",
        "LIMIT": "64",
        "SET_LEVEL": "3",
        "HOSTNAME": "one",
    }
    assert {key: found.get(key) for key in expected} == expected
    assert arguments == ["one", "red $(COLOUR)"]
    assert "SECRET_OF_THE_HUB" not in found


async def test_volumes_are_folders_that_commands_name_by_their_mount_path(
    rig: LocalRig, tmp_path: Path
) -> None:
    one = pod(
        "one",
        *("sh", "-c", "cat /etc/settings/colour && echo hello > /scratch/note && cat $NOTE && pwd"),
        env={"NOTE": "/scratch/note"},
        container={
            "workingDir": "/scratch",
            "volumeMounts": [
                {"name": "settings", "mountPath": "/etc/settings"},
                {"name": "scratch", "mountPath": "/scratch"},
            ],
        },
        volumes=[
            {"name": "settings", "configMap": {"name": "settings"}},
            {"name": "scratch", "emptyDir": {}},
        ],
    )
    _, seen, told = await run(rig, config_map("settings", colour="red\n"), one)
    assert (seen.phase, told.split()[:2]) == ("Succeeded", ["red", "hello"])
    scratch = Path(told.split()[2])
    assert scratch.is_relative_to(tmp_path)
    assert not scratch.exists()  # it went with the pod


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"volumes": [{"name": "v", "hostPath": {"path": "/etc"}}]},
            "spec.volumes[0].hostPath: /etc is not below a folder",
            id="a folder of the host is refused unless allowed",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
            "spec.volumes[0]: a local cluster has no volumes of type persistentVolumeClaim",
            id="a volume claim is refused",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "configMap": {"name": "absent"}}]},
            "spec.volumes[0].configMap: 'absent' is not among what travels with the work",
            id="a missing ConfigMap is refused",
        ),
        pytest.param(
            {"containers": [{"name": "main", "image": "busybox"}]},
            "spec.containers[0].command: a local cluster runs no images",
            id="an image alone is refused",
        ),
    ],
)
async def test_what_a_machine_cannot_do_is_told_with_its_path(
    rig: LocalRig, spec: Plain, expected: str
) -> None:
    one = work("one", pod("one", "true", **spec))
    await rig.driver.apply(one)
    seen = (await rig.driver.observe()).works[one.metadata.name]
    assert expected in seen.faults[0]
    assert not seen.pods


async def test_output_can_be_followed_while_it_is_written(rig: LocalRig, tmp_path: Path) -> None:
    signal_file = shared(tmp_path) / "go"
    text = (
        "import os, time\n"
        "print('first', flush=True)\n"
        f"while not os.path.exists({str(signal_file)!r}): time.sleep(0.01)\n"
        "print('second')"
    )
    one = work("one", pod("one", *program(text)))
    await rig.driver.apply(one)
    told = []
    async for part in rig.driver.logs(LogQuery(work=one.metadata.name, follow=True)):
        told.append(part)
        signal_file.touch()  # only now does it go on
    assert b"".join(told) == b"first\nsecond\n"
    assert await output(rig, one, tail_lines=1) == "second\n"
    assert await output(rig, one, since=0.0) == "first\nsecond\n"
    assert await output(rig, one, since=4e9) == ""


async def test_output_is_bounded_and_the_newest_is_kept(tmp_path: Path) -> None:
    async with machine(tmp_path, limits=replace(QUICK, log_bytes_max=200_000)) as rig:
        text = "for n in range(200_000): print(n)"
        one, _, told = await run(rig, pod("one", *program(text)))
        kept = told.split()
        assert kept[-1] == "199999"
        assert kept == [str(n) for n in range(200_000 - len(kept), 200_000)]
        files = [f.stat().st_size for f in rig.folder.rglob("*.log*") if "main" in f.name]
        assert sum(files) < 600_000
        assert await output(rig, one, tail_lines=2) == "199998\n199999\n"


async def test_a_container_that_fails_is_started_again_where_its_policy_says_so(
    rig: LocalRig, tmp_path: Path
) -> None:
    count = shared(tmp_path) / "count"
    script = f"echo x >> {count}; echo run $(wc -l < {count}); test $(wc -l < {count}) -ge 3"
    one, seen, told = await run(rig, pod("one", "sh", "-c", script, restart="OnFailure"))
    assert (seen.phase, seen.restarts, told) == ("Succeeded", 2, "run 3\n")
    assert await output(rig, one, is_previous=True) == "run 2\n"


async def test_init_containers_run_in_order_and_sidecars_go_with_the_pod(
    rig: LocalRig, tmp_path: Path
) -> None:
    trace = shared(tmp_path) / "trace"

    def says(word: str) -> list[str]:
        return ["sh", "-c", f"echo {word} >> {trace}"]

    ends = f"echo sidecar-ended >> {trace}; exit 0"
    sidecar = f"trap '{ends}' TERM; touch {trace}.up; while true; do sleep 0.01; done"
    waits = f"while ! test -e {trace}.up; do sleep 0.01; done; echo main >> {trace}"
    one = pod(
        "one",
        *("sh", "-c", waits),
        initContainers=[
            {"name": "a", "command": says("a")},
            {"name": "side", "restartPolicy": "Always", "command": ["sh", "-c", sidecar]},
            {"name": "b", "command": says("b")},
        ],
    )
    _, seen, _ = await run(rig, one)
    assert seen.phase == "Succeeded"
    assert trace.read_text().split() == ["a", "b", "main", "sidecar-ended"]


async def test_a_failed_init_container_fails_the_pod_before_it_begins(rig: LocalRig) -> None:
    one = pod("one", "echo", "main", initContainers=[{"name": "a", "command": ["false"]}])
    _, seen, told = await run(rig, one)
    assert (seen.phase, seen.exit_code, told) == ("Failed", 1, "")


async def test_a_pod_past_its_deadline_fails(rig: LocalRig) -> None:
    _, seen, _ = await run(rig, pod("one", "sleep", "3600", activeDeadlineSeconds=1))
    assert (seen.phase, seen.reason) == ("Failed", "DeadlineExceeded")


async def test_a_job_past_its_deadline_fails_and_its_pods_end(rig: LocalRig) -> None:
    timed = job("one")
    timed["spec"]["activeDeadlineSeconds"] = 1
    one = work("one", timed)
    await rig.driver.apply(one)

    def has_failed(seen: Observation) -> bool:
        status = seen.works[one.metadata.name].objects[0]["status"]
        return any(found["type"] == "Failed" for found in status.get("conditions", ()))

    seen = await rig.until(
        lambda seen: has_failed(seen) and has_no_pods(one)(seen), "the failure, and the pod gone"
    )
    await rig.restart()
    assert (await rig.driver.observe()).works == seen.works  # over is over


async def test_the_stop_signal_comes_first_and_the_grace_is_honoured(
    rig: LocalRig, tmp_path: Path
) -> None:
    saved = shared(tmp_path) / "saved"
    text = (
        "import os, signal, sys, time\n"
        "def save(*_):\n"
        "    open(os.environ['FAIRWAY_CHECKPOINT_FILE'], 'w').close()\n"
        f"    open({str(saved)!r}, 'w').close()\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGUSR1, save)\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(3600)"
    )
    one = work("one", pod("one", *program(text)))
    await rig.driver.apply(one)
    assert await first_line(rig, one) == "ready"
    await rig.driver.stop(one.metadata.name, Stop(signal="SIGUSR1", grace_seconds=30))
    seen = await rig.until(has_no_pods(one), "the pod gone")
    assert saved.exists()
    assert seen.works[one.metadata.name].checkpointed_at is not None


async def test_what_ignores_the_signal_is_killed_after_the_grace(rig: LocalRig) -> None:
    text = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(os.getpid(), flush=True)\n"
        "while True: time.sleep(3600)"
    )
    one = work("one", pod("one", *program(text)))
    await rig.driver.apply(one)
    pid = rig.on_machine(one, int(await first_line(rig, one)))
    await rig.driver.stop(one.metadata.name, Stop(grace_seconds=4))
    seen = await rig.driver.observe()
    assert (phase_of(seen, one), is_alive(pid)) == ("Terminating", True)
    await rig.until(has_no_pods(one), "the pod gone")
    assert not is_alive(pid)


DAEMON = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
read, written = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        os.write(written, str(os.getpid()).encode())
        os.close(written)
        for descriptor in (0, 1, 2):
            os.close(descriptor)
        while True: time.sleep(3600)
    os._exit(0)
os.wait()
print(os.read(read, 100).decode(), flush=True)
"""


@pytest.mark.parametrize(
    "then",
    [
        pytest.param("sys.exit(0)", id="that the main process left behind"),
        pytest.param("time.sleep(3600)", id="of a pod that is stopped"),
    ],
)
async def test_no_daemon_survives_its_pod(rig: LocalRig, tmp_path: Path, then: str) -> None:
    one = work("one", pod("one", *program(f"{DAEMON}{then}  # {tmp_path}")))
    await rig.driver.apply(one)
    daemon = int(await first_line(rig, one))
    if "exit" not in then:
        assert is_alive(rig.on_machine(one, daemon))
        await rig.driver.stop(one.metadata.name, Stop(grace_seconds=0))
        await rig.until(has_no_pods(one), "the pod gone")
    else:
        await rig.until(is_over(one), "the end of the pod")
    assert not running(f"# {tmp_path}")


async def test_a_next_attempt_is_another_process_and_the_earlier_one_is_gone(rig: LocalRig) -> None:
    script = pod(
        "one", *program("import os, time; print(os.getpid(), flush=True); time.sleep(3600)")
    )
    first, second = work("one", script, attempt=1), work("one", script, attempt=2)
    await rig.driver.apply(first)
    earlier = rig.on_machine(first, int(await first_line(rig, first)))
    await rig.driver.apply(second)
    await rig.until(
        lambda seen: (
            [(p.attempt, p.phase) for p in seen.works[second.metadata.name].pods] == [(2, "Ready")]
        ),
        "the second attempt",
    )
    assert not is_alive(earlier)
    assert rig.on_machine(second, int(await first_line(rig, second))) != earlier


async def test_objects_come_and_go_in_one_attempt_and_the_others_run_on(rig: LocalRig) -> None:
    def pods(seen: Observation) -> dict[str, tuple[str, float | None]]:
        found = seen.works["team.one"].pods
        return {item.name: (item.phase, item.started_at) for item in found}

    def are_ready(*names: str) -> Callable[[Observation], bool]:
        ready = dict.fromkeys(names, "Ready")
        return lambda seen: {name: phase for name, (phase, _) in pods(seen).items()} == ready

    await rig.driver.apply(work("one", job("a"), job("b")))
    first = pods(await rig.until(are_ready("a-0", "b-0"), "both ready"))
    await rig.driver.apply(work("one", job("b"), job("c")))
    second = pods(await rig.until(are_ready("b-0", "c-0"), "the second and the third ready"))
    assert second["b-0"] == first["b-0"]


async def test_a_failed_pod_of_a_job_is_made_anew_as_often_as_the_job_says(rig: LocalRig) -> None:
    failing = job("one")
    failing["spec"]["backoffLimit"] = 2
    failing["spec"]["template"]["spec"]["containers"][0]["command"] = ["false"]
    one = work("one", failing)
    await rig.driver.apply(one)

    def has_failed(seen: Observation) -> bool:
        status = seen.works[one.metadata.name].objects[0]["status"]
        return any(found["type"] == "Failed" for found in status.get("conditions", ()))

    seen = await rig.until(has_failed, "the failure of the job")
    found = seen.works[one.metadata.name]
    assert [(p.phase, p.restarts) for p in found.pods] == [("Failed", 2)]
    assert found.objects[0]["status"]["failed"] == 3


async def test_only_the_owner_may_look_into_the_folder(rig: LocalRig) -> None:
    await run(rig, pod("one", "true"))
    assert rig.folder.stat().st_mode & 0o777 == 0o700
    plans = list(rig.folder.rglob("plan.json"))
    assert plans
    assert all(plan.stat().st_mode & 0o077 == 0 for plan in plans)


async def test_a_pod_ends_even_if_it_is_stopped_at_its_first_moment(rig: LocalRig) -> None:
    one = work("one", pod("one", "sleep", "3600"))
    await rig.driver.apply(one)
    await rig.driver.stop(one.metadata.name, Stop(grace_seconds=5))
    await rig.until(has_no_pods(one), "the pod gone")


async def test_a_keeper_that_is_killed_takes_its_container_with_it(rig: LocalRig) -> None:
    one = work(
        "one",
        pod(
            "one",
            *program("import os, time; print(os.getpid(), flush=True); time.sleep(3600)"),
        ),
    )
    await rig.driver.apply(one)
    child, keeper = rig.on_machine(one, int(await first_line(rig, one))), rig.keeper(one)
    os.kill(keeper, signal.SIGKILL)
    seen = await rig.until(is_over(one), "the end of the pod")
    assert seen.works[one.metadata.name].pods[0].reason == "Lost"
    assert not is_alive(child)


def annotated(manifest: Plain, **annotations: str) -> Plain:
    keys = {f"fairway.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": keys}}


async def test_files_that_a_controller_would_mount_are_where_the_program_looks_for_them(
    rig: LocalRig,
) -> None:
    files = json.dumps({"/etc/peers/hostfile": "a slots=1\nb slots=1\n"})
    one = annotated(pod("one", "cat", "/etc/peers/hostfile"), files=files)
    _, seen, told = await run(rig, one)
    assert seen.phase == "Succeeded"
    assert told == "a slots=1\nb slots=1\n"


async def test_a_pod_that_needs_a_controller_is_refused_with_the_reason(rig: LocalRig) -> None:
    why = "its commands are written by the controller"
    one = work("one", annotated(pod("one", "true"), needs_controller=why))
    await rig.driver.apply(one)
    seen = (await rig.driver.observe()).works[one.metadata.name]
    assert seen.faults == {
        0: f"pod one: a local cluster has no controller of its kind: {why}",
    }
    assert not [each for each in seen.pods if each.phase != "Pending"]
