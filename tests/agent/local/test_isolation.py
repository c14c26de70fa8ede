"""What a pod of a local cluster sees of its machine, and how a machine that fails is spared."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory

import pytest

from fairway.agent.drivers.interface import Observation
from fairway.agent.drivers.local import isolation as isolation_of
from fairway.agent.drivers.local import pods
from fairway.agent.drivers.local.isolation import RefusedFolder, check_folders, find_isolation
from tests.agent.local.machines import QUICK, LocalRig, isolation, machine, pod, program, shared
from tests.agent.local.test_processes import run
from tests.contracts.drivers import Plain, pods_of, work


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[LocalRig]:
    if isolation() is None:
        pytest.skip("this machine cannot isolate pods")
    async with machine(tmp_path) as opened:
        yield opened


async def test_a_pod_has_a_home_and_a_tmp_of_its_own(rig: LocalRig) -> None:
    script = (
        "cd; pwd; ls -A /tmp /var/tmp; echo x > /tmp/note; cat /var/tmp/note; ls -A /root /home"
    )
    outside = ("/tmp", Path.home())  # an interpreter below /root is seen, and nothing beside it
    with ExitStack() as files:
        for folder in outside:
            files.enter_context(NamedTemporaryFile(prefix="of-the-test", dir=folder))
        _, _, told = await run(rig, pod("one", "sh", "-c", script))
    assert "/home\n" in told.splitlines(keepends=True)[0]
    assert "of-the-test" not in told
    assert "x\n" in told


@pytest.mark.parametrize("where", ["/tmp", "/var/tmp"])
async def test_the_data_of_a_hub_may_be_anywhere(where: str) -> None:
    if isolation() is None:
        pytest.skip("this machine cannot isolate pods")
    with TemporaryDirectory(dir=where) as folder:
        async with machine(Path(folder)) as rig:
            script = "echo x | tee /tmp/note note $FAIRWAY_CHECKPOINT_FILE; ls /var/tmp"
            _, seen, told = await run(rig, pod("one", "sh", "-c", script))
    assert (seen.exit_code, told[:2]) == (0, "x\n")


@pytest.mark.parametrize(
    ("where", "is_seen"),
    [("/tmp", True), ("/usr/lib", True), ("/home/me", False), ("/tmp/x", False)],
)
async def test_a_working_directory_that_a_pod_cannot_see_is_its_home(
    rig: LocalRig, where: str, is_seen: bool
) -> None:
    _, _, told = await run(rig, pod("one", "pwd", container={"workingDir": where}))
    *note, folder = told.splitlines()
    if is_seen:
        assert (note, folder) == ([], where)
    else:
        assert folder.endswith("/one/home")
        assert note[0].startswith(f"fairway: this pod does not see {where} and runs in its home; ")


@pytest.mark.parametrize(
    ("where", "is_seen"),
    [
        ("project", True),
        ("project/sources", True),
        ("link", False),  # leads nowhere in the sandbox
        ("data", False),
        (".", True),  # without the hub's data in it
        ("/run", False),
    ],
)
async def test_without_tenants_a_pod_sees_the_working_directory_that_it_names(
    tmp_path: Path, where: str, is_seen: bool
) -> None:
    if isolation() is None:
        pytest.skip("this machine cannot isolate pods")
    (tmp_path / "project" / "sources").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "project")
    data, project = tmp_path / "data", tmp_path / "project"
    for folder in (data, tmp_path, project, project / "sources"):
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(
            f"import os; print('trained', *(os.listdir({str(data)!r}) if {where == '.'} else ()))"
        )
    limits = replace(QUICK, shares_working_directories=lambda: True)
    async with machine(tmp_path, limits=limits, hidden=(tmp_path / "data",)) as rig:
        folder = str(tmp_path / where)
        one = pod("one", sys.executable, "train.py", container={"workingDir": folder})
        _, _, told = await run(rig, one)
    if is_seen:
        assert told == "trained\n"  # and nothing of the hub's data
    else:
        assert "does not see" in told
        assert "trained" not in told


async def test_nothing_of_the_machine_can_be_changed(rig: LocalRig) -> None:
    script = f"touch /x /usr/x {sys.prefix}/x /etc/x /etc/hosts /sys/x; touch {rig.folder}/x; id -u"
    _, _, told = await run(rig, pod("one", "sh", "-c", script))
    *refused, user = told.splitlines()
    assert len([line for line in refused if "cannot touch" in line]) >= 6
    assert not (rig.folder / "x").exists()
    assert int(user) == (isolation_of.POD_USER if os.geteuid() == 0 else os.geteuid())


async def test_a_library_that_a_pod_names_is_not_loaded_outside_of_its_sandbox(
    rig: LocalRig,
) -> None:
    _, _, told = await run(rig, pod("one", "true", env={"LD_PRELOAD": "/no/such/library.so"}))
    assert told.count("cannot be preloaded") == 1  # into the pod's own process


async def test_a_variable_cannot_hold_options_of_the_sandbox(rig: LocalRig) -> None:
    text = b"x\0--bind\0/\0/host"
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "keys", "namespace": "default"},
        "data": {"key": base64.b64encode(text).decode()},
    }
    source = {"secretKeyRef": {"name": "keys", "key": "key"}}
    one = pod("one", "ls", "/host", env=[{"name": "KEY", "valueFrom": source}])
    _, seen, _ = await run(rig, secret, one)
    assert (seen.exit_code, seen.reason) == (128, "StartError")
    assert "null byte" in seen.message


async def test_a_checkpoint_that_is_a_link_tells_nothing_of_its_target(
    rig: LocalRig, tmp_path: Path
) -> None:
    target = tmp_path / "of-the-hub"
    target.touch()
    os.utime(target, (1e9, 1e9))
    text = f"import os; os.symlink({str(target)!r}, os.environ['FAIRWAY_CHECKPOINT_FILE'])"
    one, _, _ = await run(rig, pod("one", *program(text)))
    told = (await rig.driver.observe()).works[one.metadata.name].checkpointed_at
    assert told is not None
    assert told > 1e9


async def test_what_is_hidden_cannot_be_seen_below_what_is_seen(tmp_path: Path) -> None:
    if isolation() is None:
        pytest.skip("this machine cannot isolate pods")
    found = find_isolation([Path(sys.prefix, "lib"), Path(sys.prefix, "pyvenv.cfg")])
    options = found.sandbox(mark={})["options"]
    at = options.index("--tmpfs", options.index(str(Path(sys.prefix).resolve())))
    assert options[at + 1] == str(Path(sys.prefix, "lib").resolve())
    assert options[at + 2 : at + 4] == ["--ro-bind", "/dev/null"]


@pytest.mark.parametrize("name", ["above", "itself", "below", "python"])
def test_a_folder_through_which_pods_reach_the_hub_is_refused(tmp_path: Path, name: str) -> None:
    data = tmp_path / "above" / "data"
    (data / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(data.parent)
    folders = {
        "above": tmp_path / "link",
        "itself": data,
        "below": data / "below",
        "python": Path(sys.prefix).parent,
    }
    with pytest.raises(RefusedFolder, match="is the hub's own"):
        check_folders([folders[name]], [data])
    check_folders([shared(tmp_path)], [data])


LATER = replace(QUICK, backoff_seconds=(3600.0, 3600.0))


def service() -> Plain:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "command": ["sleep", "3600"]}]},
            },
        },
    }


async def test_a_supervisor_that_cannot_start_is_tried_again_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pods, "_root", lambda: str(tmp_path / "removed"))
    async with machine(tmp_path, limits=LATER) as rig:
        one = work("one", service())
        await rig.driver.apply(one)

        def waits(seen: Observation) -> bool:
            return any("supervisor could not start" in pod.message for pod in pods_of(seen, one))

        await rig.until(waits, "a pod that waits")
        assert len(list(rig.folder.rglob("plan.json"))) == 1


async def test_a_pod_that_the_machine_could_not_start_is_not_tried_at_every_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with machine(tmp_path, limits=LATER) as rig:
        one = work("one", pod("one", "true"))
        monkeypatch.setattr(sys, "executable", str(tmp_path / "removed"))
        await rig.driver.apply(one)
        monkeypatch.undo()
        await rig.driver.apply(work("two", pod("two", "true")))
        await rig.until(lambda seen: bool(seen.works["team.two"].pods), "the other pod")
        (waiting,) = pods_of(await rig.driver.observe(), one)
        assert (waiting.phase, "could not start" in waiting.message) == ("Pending", True)
