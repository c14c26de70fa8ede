"""What this machine has for pods: detected, or as the cluster's spec says.

Processors are those that this process may use, memory is that of the machine, both limited by its
control group. Amounts in the spec override detected ones, such as four GPUs on a machine without
any: they are then slots, numbered from 0.
"""

from __future__ import annotations

import os
import platform
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairway.agent.drivers.local.gpus import Gpu
from fairway.api.amounts import NANO, Amounts, Quantity

GPU = "nvidia.com/gpu"
PODS_MOST = 110  # the default of a kubelet, unless the spec says otherwise

# Variables that say which devices of a resource a program may use.
DEVICE_VARIABLES: Mapping[str, tuple[str, ...]] = {
    GPU: ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
    "amd.com/gpu": ("ROCR_VISIBLE_DEVICES",),
}
# Python's names of architectures to those of a kubelet.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The one node of a local cluster."""

    name: str
    allocatable: Amounts
    labels: Mapping[str, str] = field(default_factory=dict)
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def look(given: Mapping[str, Quantity], gpus: Sequence[Gpu], folder: Path) -> Machine:
    """The machine; given amounts override detected ones."""
    amounts = {**_find(gpus, folder), **{name: quantity.nanos for name, quantity in given.items()}}
    devices = {}
    for resource in DEVICE_VARIABLES:
        count = amounts.get(resource, 0) // NANO
        real = [gpu.uuid for gpu in gpus] if resource == GPU else []
        are_real = count <= len(real)
        names = real[:count] if are_real else [str(index) for index in range(count)]
        if names:
            devices[resource] = tuple(names)
    name = _node_name(socket.gethostname())
    return Machine(
        name=name,
        allocatable=Amounts(amounts),
        labels={**_labels(name), **_gpu_labels(gpus)},
        devices=devices,
    )


def _find(gpus: Sequence[Gpu], folder: Path) -> dict[str, int]:
    disk = os.statvfs(folder)
    result = {
        "cpu": _processors_nanos(),
        "memory": _memory_bytes() * NANO,
        "ephemeral-storage": disk.f_bavail * disk.f_frsize * NANO,
        "pods": PODS_MOST * NANO,
    }
    return {**result, GPU: len(gpus) * NANO} if gpus else result


def _processors_nanos() -> int:
    nanos = len(os.sched_getaffinity(0)) * NANO
    quota, _, period = _read(_GROUPS / "cpu.max").partition(" ")
    if not quota:
        quota = _read(_GROUPS / "cpu/cpu.cfs_quota_us")
        period = _read(_GROUPS / "cpu/cpu.cfs_period_us")
    if quota.isdecimal() and period.isdecimal() and int(quota) > 0:
        nanos = min(nanos, int(quota) * NANO // int(period))
    return nanos


def _memory_bytes() -> int:
    result = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        text = _read(_GROUPS / limit)
        if text.isdecimal():
            result = min(result, int(text))
    return result


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _node_name(host: str) -> str:
    """A host name as a node name: lower case, and only characters that names may have."""
    return re.sub(r"[^a-z0-9.-]+", "-", host.lower()).strip("-.")[:253] or "localhost"


def _labels(name: str) -> dict[str, str]:
    machine = platform.machine()
    return {
        "kubernetes.io/hostname": name[:63].strip("-."),
        "kubernetes.io/arch": _ARCHITECTURES.get(machine, machine),
        "kubernetes.io/os": platform.system().lower(),
    }


def _gpu_labels(gpus: Sequence[Gpu]) -> dict[str, str]:
    """Labels as GPU feature discovery sets them, likewise from the first GPU."""
    if not gpus:
        return {}
    product = re.sub(r"[^A-Za-z0-9_.-]+", "-", gpus[0].product).strip("-_.")[:63]
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.count": str(len(gpus)),
        "nvidia.com/gpu.memory": str(gpus[0].memory_mib),
    }
