"""Which resources are counted as GPUs."""

from __future__ import annotations

import pytest

from fairway.core.costs.supplies import is_accelerator

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
]


@pytest.mark.parametrize("resource", COUNTED)
def test_a_device_of_a_vendor_is_counted(resource: str) -> None:
    assert is_accelerator(resource)


@pytest.mark.parametrize("resource", NOT_COUNTED)
def test_memory_networks_and_whole_chips_are_not(resource: str) -> None:
    assert not is_accelerator(resource)
