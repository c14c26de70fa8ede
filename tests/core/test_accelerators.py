"""Which resources are counted as GPUs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fairway.api import amounts
from fairway.api.amounts import is_accelerator
from fairway.cli.holdings import gpus_of
from fairway.core.nodes import Cluster, Nodes, Room
from fairway.core.packing.space import leading_resource

COUNTED = [
    "nvidia.com/gpu",
    "amd.com/gpu",
    "google.com/tpu",
    "huawei.com/Ascend910",
    "huawei.com/Ascend310P",
    "habana.ai/gaudi",
    "gpu.intel.com/i915",
    "aliyun.com/ppu",
    "aws.amazon.com/neuroncore",
    "nvidia.com/mig-1g.5gb",
    "nvidia.com/mig-1g.5gb.me",
]
NOT_COUNTED = [
    "cpu",
    "memory",
    "gpu",
    "rdma/hca",
    "vpc.amazonaws.com/efa",
    "nvidia.com/gpumem",
    "nvidia.com/gpu.shared",
    "huawei.com/Ascend910-memory",
    "aws.amazon.com/neuron",  # a chip, whose cores are counted
    "hugepages-2Mi",
    "rdma/hca_shared_devices_a",
    "rdma/roce_gdr",
    "nvidia.com/hostdev",
    "nvidia.com/resibp24s0",
    "nvidia.com/mlnxnics",
    "mellanox.com/cx5_sriov",
    "openshift.io/mlxnics",
    "intel.com/intel_sriov_netdevice",
    "networking.gke.io.networks/rdma-0",
    "aliyun/erdma",
    "amazonaws.com/ib-gpu-nic",
    "vpc.amazonaws.com/pod-eni",
    "xilinx.com/fpga-xilinx_u30",
    "squat.ai/fuse",
    "requests.nvidia.com/gpu.memory",
]


@pytest.mark.parametrize("resource", COUNTED)
def test_a_device_of_a_vendor_is_counted(resource: str) -> None:
    assert is_accelerator(resource)


@pytest.mark.parametrize("resource", NOT_COUNTED)
def test_memory_networks_and_whole_chips_are_not(resource: str) -> None:
    assert not is_accelerator(resource)


def test_the_page_has_the_same_words() -> None:
    source = Path(__file__).parents[2] / "web/src/words/amounts.ts"
    found = re.search(r"^const ACCELERATOR =\s*/(.*)/;$", source.read_text(), re.MULTILINE)
    assert found is not None
    assert found[1].replace(r"\/", "/") == amounts._DEVICE.pattern


def test_what_a_workload_holds_of_networks_is_not_counted_as_gpus() -> None:
    requests = {"cpu": "8", "nvidia.com/gpu": "4", "rdma/hca": "2", "vpc.amazonaws.com/efa": "1"}
    placement = {"podSets": [{"count": 3, "requests": requests}]}
    assert gpus_of({"status": {"claim": {"placements": [placement]}}}) == 12


def test_gpus_and_not_networks_decide_how_tightly_a_pod_fits() -> None:
    capacity = {"nvidia.com/gpu": 8000, "rdma/hca": 1000}
    nodes = Nodes(
        names=("n",),
        capacity={name: np.array([most], dtype=np.int64) for name, most in capacity.items()},
        ready=np.ones(1, dtype=np.bool_),
    )
    request = (("nvidia.com/gpu", 1000), ("rdma/hca", 1000))
    assert leading_resource(Room(Cluster(name="c", nodes=nodes)), request) == (
        "nvidia.com/gpu",
        1000,
    )
