"""The plan of a pod: everything its supervisor needs to run it, resolved.

A plan has no references: commands, environment and folders are final, so that the pod starts and
restarts in the same way with or without a hub.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairway.agent.drivers.local import volumes
from fairway.agent.drivers.local.environment import (
    PodFault,
    Surroundings,
    environment,
    expand,
)
from fairway.agent.drivers.local.hosts import Hosts, Mention
from fairway.agent.drivers.local.isolation import Isolation
from fairway.agent.drivers.local.machine import DEVICE_VARIABLES
from fairway.agent.drivers.local.slots import Share
from fairway.api.amounts import NANO, Quantity
from fairway.api.meta import JsonObject
from fairway.kinds.permitted import is_name
from fairway.kinds.plain import child, maps_at, text
from fairway.kinds.rules.pods import NEEDS_CONTROLLER_ANNOTATION

Plain = dict[str, Any]

# What a process inherits from the hub's environment; the rest may be secret.
_INHERITED = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR",
    "LD_LIBRARY_PATH",
)  # fmt: skip
_NO_DEVICES = {"NVIDIA_VISIBLE_DEVICES": "void"}
_UNSEEN = (
    "fairway: this pod does not see {} and runs in its home; "
    "the option --local-folder of the hub gives pods folders of its machine"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of pods; the times are those of Kubernetes."""

    grace_seconds: float = 30.0  # of pods without a grace period
    leftover_seconds: float = 2.0  # for what a container leaves behind when it ends
    backoff_seconds: tuple[float, float] = (10.0, 300.0)  # before the first restart, and at most
    log_bytes_max: int = 16 * 1024 * 1024  # of one file; two are kept for each run
    host_roots: tuple[Path, ...] = ()  # folders that pods may use, also as hostPath volumes
    isolation: Isolation | None = None  # None: pods see what the hub sees
    # Whether pods see the working directories that they name: nobody but administrators has pods.
    shares_working_directories: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a pod is planned with: its folder, hosts and ports, and the machine's devices."""

    around: Surroundings
    folder: Path
    hosts: Hosts
    ports: Mapping[Mention, int] = field(default_factory=dict)
    devices: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of the whole machine
    limits: Limits = field(default_factory=Limits)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def scratch(self) -> tuple[Path, ...]:
        """Folders that go with the pod."""
        return tuple(self.folder / name for name in ("volumes", "home", "tmp"))

    @property
    def shared(self) -> Path:
        """Where the program leaves word for the driver."""
        return self.folder / "shared"

    @property
    def checkpoint(self) -> Path:
        return self.shared / "checkpoint"


def check(ground: Ground) -> None:
    """Raises PodFault if the pod cannot be planned; makes nothing."""
    _containers(ground, Share(amounts=ground.around.allocatable))


def plan(ground: Ground, share: Share) -> tuple[Plain, list[volumes.VolumePlan]]:
    """The plan of a pod, and the volumes to make for it."""
    containers, folders = _containers(ground, share)
    spec = ground.around.pod.spec
    deadline = spec.get("activeDeadlineSeconds")
    made = {
        "containers": containers,
        "grace_seconds": grace_seconds(spec, ground.limits),
        "deadline_seconds": deadline if isinstance(deadline, int) else None,
        "backoff_seconds": list(ground.limits.backoff_seconds),
        "log_bytes_max": ground.limits.log_bytes_max,
        "scratch": [str(folder) for folder in ground.scratch],
        "checkpoint": str(ground.checkpoint),
    }
    return made, folders


def grace_seconds(spec: JsonObject, limits: Limits) -> float:
    """The grace period of a pod."""
    given = spec.get("terminationGracePeriodSeconds")
    return float(given) if isinstance(given, int | float) else limits.grace_seconds


def _containers(ground: Ground, share: Share) -> tuple[list[Plain], list[volumes.VolumePlan]]:
    around = ground.around
    why = around.pod.annotations.get(NEEDS_CONTROLLER_ANNOTATION)
    if why:
        raise PodFault(f"a local cluster has no controller of its kind: {why}")
    folders = volumes.plan_volumes(
        around,
        ground.folder / "volumes",
        ground.limits.host_roots,
        rewrite=lambda value: ground.hosts.rewritten_text(value, ground.ports),
    )
    pod_restart = text(around.pod.spec, "restartPolicy", default="Always")
    made = []
    main_devices = _divide(maps_at(around.pod.spec, "containers"), share)
    for field_name, path, container in _in_order(around.pod.spec):
        is_sidecar = field_name == "initContainers" and container.get("restartPolicy") == "Always"
        if field_name == "containers":
            role, restart = "main", pod_restart
        elif is_sidecar:
            role, restart = "sidecar", "Always"
        else:
            # An init container that succeeded is done, whatever the restart policy of the pod.
            role, restart = "init", "Never" if pod_restart == "Never" else "OnFailure"
        devices = main_devices.get(path, share.devices)
        made.append(
            {
                **_process(container, ground, folders, devices, path),
                "name": text(container, "name"),
                "role": role,
                "restart": restart,
                "leftover_seconds": ground.limits.leftover_seconds,
            }
        )
    _share_user(made)
    return made, folders


def _share_user(containers: Sequence[Plain]) -> None:
    """Lets all containers of a pod run as the hub's own user, if one of them does."""
    sandboxes = [made["sandbox"] for made in containers if made["sandbox"] is not None]
    if any(sandbox["user"] is None for sandbox in sandboxes):
        for sandbox in sandboxes:
            sandbox["user"] = None


def _in_order(spec: JsonObject) -> Iterator[tuple[str, str, JsonObject]]:
    for name in ("initContainers", "containers"):
        for index, container in enumerate(maps_at(spec, name)):
            yield name, f"spec.{name}[{index}]", container


def _process(
    container: JsonObject,
    ground: Ground,
    folders: Sequence[volumes.VolumePlan],
    devices: Mapping[str, Sequence[str]],
    path: str,
) -> Plain:
    name = text(container, "name")
    if not is_name(name):
        raise PodFault(f"{path}.name: {name!r} is not the name of a container")
    mounts = volumes.Mounts(container, folders, path)
    pod = ground.around.pod.name
    here = {
        **container,
        "env": ground.hosts.rewritten_environment(pod, maps_at(container, "env"), ground.ports),
    }
    own = environment(here, ground.around, path)
    words = [*_words(container, "command", path), *_words(container, "args", path)]
    if not container.get("command"):
        raise PodFault(
            f"{path}.command: a local cluster runs no images, so a container needs a command"
        )
    words = ground.hosts.rewritten_words(words, ground.ports)
    # There is no shell: each word of the manifest is one argument of the process.
    argv = [mounts.rewritten(expand(word, own)) for word in words]
    variables = {
        **_surrounding(ground, folders),
        **{key: mounts.rewritten(value) for key, value in own.items()},
        **_device_variables(container, devices, ground.devices),
    }
    given = mounts.rewritten(expand(text(container, "workingDir"), own))
    folder, shared = _working_directory(ground, given)
    return {
        "argv": argv,
        "env": variables,
        "cwd": folder,
        "note": _UNSEEN.format(given) if given not in ("", folder) else "",
        "sandbox": _sandbox(ground, shared),
    }


def _working_directory(ground: Ground, given: str) -> tuple[str, tuple[Path, ...]]:
    """The given one, or the pod's home if it does not see that; and the folders it may use."""
    limits, path = ground.limits, Path(given)
    shared = limits.host_roots
    if not given:
        return str(ground.home), shared
    if limits.isolation is None or path.is_relative_to(ground.folder):
        return given, shared
    if limits.isolation.shows(path, shared):
        return given, shared
    if limits.shares_working_directories() and limits.isolation.may_share(path):
        return given, (*shared, path)
    return str(ground.home), shared


def _sandbox(ground: Ground, shared: Sequence[Path]) -> Plain | None:
    isolation = ground.limits.isolation
    if isolation is None:
        return None
    if len(shared) > len(ground.limits.host_roots):
        # An administrator's folder: only the hub's user is sure to read and write there.
        isolation = replace(isolation, user=None)
    volumes_folder, home, tmp = ground.scratch
    return isolation.sandbox(
        own=(volumes_folder, home, ground.shared),
        tmp=tmp,
        folders=shared,
        mark=_mark(ground),
    )


def _mark(ground: Ground) -> dict[str, str]:
    """By which processes of the pod are known."""
    return {"FAIRWAY_CHECKPOINT_FILE": str(ground.checkpoint)}


def _words(container: JsonObject, name: str, path: str) -> list[str]:
    words = container.get(name) or []
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise PodFault(f"{path}.{name}: a list of texts is expected")
    if any("\0" in word for word in words):
        raise PodFault(f"{path}.{name}: a command has no zero bytes")
    return words


def _surrounding(ground: Ground, folders: Sequence[volumes.VolumePlan]) -> dict[str, str]:
    """Variables of every process, which its own variables may override."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    if ground.limits.isolation is not None:
        inherited |= {"HOME": str(ground.home), "TMPDIR": "/tmp"}  # noqa: S108 - its own
    return {
        **inherited,
        "HOSTNAME": text(ground.around.pod.spec, "hostname") or ground.around.pod.name,
        **_mark(ground),
        **{
            "FAIRWAY_VOLUME_" + folder.name.upper().replace("-", "_"): str(folder.folder)
            for folder in folders
        },
    }


def _divide(containers: Sequence[JsonObject], share: Share) -> dict[str, dict[str, list[str]]]:
    """Divides the pod's devices among its main containers, in order, by what each requests."""
    left = {resource: list(names) for resource, names in share.devices.items()}
    result: dict[str, dict[str, list[str]]] = {}
    for index, container in enumerate(containers):
        own = result.setdefault(f"spec.containers[{index}]", {})
        for resource, names in left.items():
            count = _ask(container, resource) // NANO
            own[resource], left[resource] = names[:count], names[count:]
    return result


def _ask(container: JsonObject, resource: str) -> int:
    resources = child(container, "resources")
    both = {**child(resources, "limits"), **child(resources, "requests")}
    return Quantity.of(both[resource]).nanos if resource in both else 0


def _device_variables(
    container: JsonObject,
    devices: Mapping[str, Sequence[str]],
    of_machine: Mapping[str, Sequence[str]],
) -> dict[str, str]:
    """Which devices the process may see; a fractional request leaves the variables alone."""
    made = {}
    for resource in of_machine:
        if _ask(container, resource) % NANO:
            continue
        named = ",".join(devices.get(resource, ()))
        for variable in DEVICE_VARIABLES[resource]:
            made[variable] = named or _NO_DEVICES.get(variable, "")
    return made
