"""The kinds of autoscalers, as far as an agent reads and writes them."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def definition(group: str, version: str, kind: str, *, scope: str = "Namespaced") -> Json:
    """A kind with a status, of which everything is kept as it is written."""
    plural = f"{kind.lower()}s"
    kept = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            # Names under k8s.io are for who has them approved; these stand for such.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": kept, "status": kept},
                        }
                    },
                }
            ],
        },
    }


DEFINITIONS = (
    definition("karpenter.sh", "v1", "NodePool", scope="Cluster"),
    definition("cluster.x-k8s.io", "v1beta1", "MachineDeployment"),
    definition("autoscaling.x-k8s.io", "v1", "ProvisioningRequest"),
)


def node_pool(name: str = "gpu", **spec: Any) -> Json:
    """A node pool of Karpenter's: two zones, spot and on demand."""

    def among(key: str, *values: str) -> Json:
        return {"key": key, "operator": "In", "values": list(values)}

    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "template": {
                "metadata": {"labels": {"accelerator": "h100"}},
                "spec": {
                    "requirements": [
                        among("node.kubernetes.io/instance-type", "p5.48xlarge", "p5en.48xlarge"),
                        among("topology.kubernetes.io/zone", "zone-a", "zone-b"),
                        among("karpenter.sh/capacity-type", "spot", "on-demand"),
                        among("kubernetes.io/arch", "amd64"),
                    ],
                    "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
                },
            },
            "limits": {"nvidia.com/gpu": 40, "cpu": "1000"},
            **spec,
        },
    }


INSTANCE_TYPE = {
    "name": "p5.48xlarge",
    "shape": {"cpu": "190", "memory": "1900Gi", "nvidia.com/gpu": 8, "pods": 110},
    "pricePerHour": "98.32",
    "spotPricePerHour": "39.10",
    "provisionSeconds": 240,
}


def machine_deployment(name: str = "workers") -> Json:
    """A node group of cluster autoscaler's, by Cluster API, that has no node yet."""
    size = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-"
    capacity = "capacity.cluster-autoscaler.kubernetes.io/"
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "MachineDeployment",
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": {
                f"{size}max-size": "6",
                f"{size}min-size": "1",
                f"{capacity}cpu": "32",
                f"{capacity}memory": "256Gi",
                f"{capacity}maxPods": "110",
                f"{capacity}gpu-count": "4",
                f"{capacity}gpu-type": "nvidia.com/gpu",
                f"{capacity}labels": "accelerator=l40s,topology.kubernetes.io/zone=zone-c",
                f"{capacity}taints": "gpu=yes:NoSchedule,broken",
            },
        },
        "spec": {"replicas": 0},
    }
