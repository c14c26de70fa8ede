"""Which accelerators a node has, by the usual labels and resources.

Every vendor and provider has its own labels. Reports keep them unchanged, since pods select nodes
by them; here they are only read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairway.api.amounts import is_accelerator

# Labels that name the model, the most trusted first: device plugins know what is there, providers
# only what was requested.
_MODEL_LABELS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "amd.com/gpu.device-id",
    "gpu.intel.com/product",
    "cloud.google.com/gke-tpu-accelerator",
    "cloud.google.com/gke-accelerator",
    "aliyun.accelerator/nvidia_name",
    "aliyun.accelerator/npu_name",
    "accelerator/huawei-npu",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "accelerator",
)
_MEMORY_LABELS = ("nvidia.com/gpu.memory", "aliyun.accelerator/nvidia_mem", "amd.com/gpu.vram")
_TOPOLOGY_LABELS = ("cloud.google.com/gke-tpu-topology",)
_CHIPS = ("aws.amazon.com/neuron",)  # whole chips, whose cores are counted as accelerators
_CUT = ("-SHARED",)  # what a device plugin appends to the model of shared devices


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerators:
    """The accelerators of one node; a node has one model only."""

    model: str = ""  # as the label has it
    resources: tuple[str, ...] = ()  # that pods request
    memory: str = ""
    topology: str = ""  # of the slice that the node is a part of


def accelerators_of(
    labels: Mapping[str, str], allocatable: Mapping[str, int]
) -> Accelerators | None:
    """The accelerators of a node; None if it has none."""
    resources = tuple(
        sorted(
            name
            for name, nanos in allocatable.items()
            if nanos and (is_accelerator(name) or name in _CHIPS)
        )
    )
    model = _first(labels, _MODEL_LABELS)
    for end in _CUT:
        model = model.removesuffix(end)
    if not resources and not model:
        return None
    return Accelerators(
        model=model,
        resources=resources,
        memory=_first(labels, _MEMORY_LABELS),
        topology=_first(labels, _TOPOLOGY_LABELS),
    )


def _first(labels: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((labels[key] for key in keys if labels.get(key)), "")


def model_label(labels: Mapping[str, str]) -> str:
    """The label that names the model of a node's accelerators; empty if none does."""
    return next((key for key in _MODEL_LABELS if labels.get(key)), "")
