"""Which accelerators a node has, by the labels and resources that are usual.

Every vendor and provider has labels of its own. They are reported as they are, since pods are sent
to nodes by them; here they are only read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairway.api.amounts import is_accelerator

# Labels that name the model, in the order in which they are believed: device plugins know what is
# there, providers only what was asked for.
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
_CUT = ("-SHARED",)  # what a device plugin appends to the model where devices are shared


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerators:
    """The accelerators of one node; all of one model, as nodes are."""

    model: str = ""  # as the label has it
    resources: tuple[str, ...] = ()  # by which pods ask for them
    memory: str = ""
    topology: str = ""  # of the slice that the node is a part of


def accelerators_of(
    labels: Mapping[str, str], allocatable: Mapping[str, int]
) -> Accelerators | None:
    """What a node has; None where it has nothing of the kind."""
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
    """The label that names the model of a node's accelerators; empty where none does."""
    return next((key for key in _MODEL_LABELS if labels.get(key)), "")
