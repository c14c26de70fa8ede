"""Pods that Pod Security `baseline` refuses, that it accepts, and that only Fairway refuses.

A real API server is asked about them too, so the tables say what Kubernetes says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

Json = dict[str, Any]
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def pod(container: Json | None = None, annotations: Mapping[str, str] | None = None, **spec: Any):
    """A Pod with one container."""
    main = {"name": "main", "image": "program", **(container or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "trial", "annotations": dict(annotations or {})},
        "spec": {"containers": [main], **spec},
    }


def secured(**context: Any) -> Json:
    """A Pod whose container has this security context."""
    return pod({"securityContext": context})


def whole(**context: Any) -> Json:
    """A Pod that has this security context itself."""
    return pod(securityContext=context)


def mounted(**source: Any) -> Json:
    """A Pod with a volume."""
    return pod(volumes=[{"name": "disk", **source}])


def second(field: str, **container: Any) -> Json:
    """A Pod with another container beside the main one."""
    return pod(**{field: [{"name": "other", "image": "program", **container}]})


def apparmor(profile: str) -> Json:
    return pod(annotations={"container.apparmor.security.beta.kubernetes.io/main": profile})


# What `baseline` refuses, by the permission of a Cluster that allows it.
BASELINE: dict[str, dict[str, Json]] = {
    "HostNetwork": {
        "the node's network": pod(hostNetwork=True),
        "a port of the node": pod({"ports": [{"containerPort": 80, "hostPort": 80}]}),
        "a port of the node beside it": second(
            "initContainers", ports=[{"containerPort": 80, "hostPort": 80}]
        ),
        **{
            f"a {probe} by HTTP of another host": pod(
                {probe: {"httpGet": {"port": 80, "host": "10.0.0.1"}}}
            )
            for probe in PROBES
        },
        "a probe by TCP of another host": pod(
            {"livenessProbe": {"tcpSocket": {"port": 80, "host": "10.0.0.1"}}}
        ),
        "a hook by HTTP of another host": pod(
            {"lifecycle": {"postStart": {"httpGet": {"port": 80, "host": "10.0.0.1"}}}}
        ),
        "a hook by TCP of another host": pod(
            {"lifecycle": {"preStop": {"tcpSocket": {"port": 80, "host": "10.0.0.1"}}}}
        ),
    },
    "HostNamespaces": {
        "the node's processes": pod(hostPID=True),
        "the node's memory": pod(hostIPC=True),
    },
    "HostPath": {"a path of the node": mounted(hostPath={"path": "/etc"})},
    "Privileged": {
        "a privileged container": secured(privileged=True),
        "a privileged init container": second(
            "initContainers", securityContext={"privileged": True}
        ),
        "a capability": secured(capabilities={"add": ["NET_ADMIN"]}),
        "all capabilities": secured(capabilities={"add": ["CHOWN", "ALL"]}),
        "a capability that is not dropped by name": secured(capabilities={"add": ["NET_RAW"]}),
        "no AppArmor": secured(appArmorProfile={"type": "Unconfined"}),
        "no AppArmor in the pod": whole(appArmorProfile={"type": "Unconfined"}),
        "no AppArmor by an annotation": apparmor("unconfined"),
        "a type of SELinux": secured(seLinuxOptions={"type": "spc_t"}),
        "a user of SELinux": whole(seLinuxOptions={"user": "system_u"}),
        "a role of SELinux": whole(seLinuxOptions={"role": "system_r"}),
        "no seccomp": secured(seccompProfile={"type": "Unconfined"}),
        "no seccomp in the pod": whole(seccompProfile={"type": "Unconfined"}),
        "a setting of the kernel": whole(sysctls=[{"name": "kernel.msgmax", "value": "65536"}]),
        "a process of a Windows node": pod(
            hostNetwork=True,
            securityContext={"windowsOptions": {"hostProcess": True, "runAsUserName": "system"}},
        ),
    },
}
SYSCTLS = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
]
CAPABILITIES = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
]
# What both accept.
HARMLESS: dict[str, Json] = {
    "a plain pod": pod(),
    "no access, said aloud": pod(
        {"securityContext": {"privileged": False}, "ports": [{"containerPort": 80, "hostPort": 0}]},
        hostNetwork=False,
        hostPID=False,
        hostIPC=False,
    ),
    "root in a container": secured(
        runAsUser=0, runAsGroup=0, allowPrivilegeEscalation=True, readOnlyRootFilesystem=False
    ),
    "the capabilities that containers have": secured(
        capabilities={"add": CAPABILITIES, "drop": ["ALL"]}
    ),
    "profiles": secured(
        appArmorProfile={"type": "RuntimeDefault"},
        seccompProfile={"type": "Localhost", "localhostProfile": "own.json"},
        procMount="Default",
    ),
    "a profile by an annotation": apparmor("runtime/default"),
    "a profile of the node by an annotation": apparmor("localhost/own"),
    "types of SELinux": whole(seLinuxOptions={"type": "container_engine_t", "level": "s0:c1,c2"}),
    "groups": whole(
        fsGroup=1000,
        fsGroupChangePolicy="OnRootMismatch",
        supplementalGroups=[1000],
        supplementalGroupsPolicy="Merge",
        runAsNonRoot=True,
        runAsUser=1000,
    ),
    "settings of the kernel": whole(sysctls=[{"name": name, "value": "1"} for name in SYSCTLS]),
    "probes and hooks of its own": pod(
        {
            "livenessProbe": {"httpGet": {"port": 80, "path": "/"}},
            "readinessProbe": {"tcpSocket": {"port": 80}},
            "startupProbe": {"grpc": {"port": 80}},
            "lifecycle": {"preStop": {"exec": {"command": ["hostPath:", "nodeName: a"]}}},
        }
    ),
    "volumes of its own": pod(
        volumes=[
            {"name": "a", "emptyDir": {"medium": "Memory"}},
            {"name": "b", "configMap": {"name": "a"}},
            {"name": "c", "secret": {"secretName": "a"}},
            {"name": "d", "persistentVolumeClaim": {"claimName": "a"}},
            {"name": "e", "downwardAPI": {"items": []}},
            {
                "name": "f",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"path": "token"}},
                        {"configMap": {"name": "a"}},
                        {"secret": {"name": "a"}},
                    ]
                },
            },
            {
                "name": "g",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                        }
                    }
                },
            },
        ]
    ),
    "words that others have for their programs": pod(
        {
            "args": ["spec: {hostNetwork: true}"],
            "env": [
                {"name": "hostPath", "value": "hostPath: {path: /etc}"},
                {"name": "nodeName", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            ],
        },
        annotations={"about": "it needs no hostPath, and: no nfs"},
    ),
    "much of what a pod may have": pod(
        {"stdin": True, "tty": True, "workingDir": "/", "terminationMessagePolicy": "File"},
        serviceAccountName="default",
        priorityClassName="",
        tolerations=[{"operator": "Exists"}],
        hostAliases=[{"ip": "127.0.0.1", "hostnames": ["here"]}],
        dnsPolicy="ClusterFirst",
        shareProcessNamespace=True,
        enableServiceLinks=False,
        schedulerName="other",
        topologySpreadConstraints=[],
    ),
}
# What `baseline` accepts and Fairway does not, with words of the refusal.
BEYOND: dict[str, tuple[Json, str]] = {
    "a node": (pod(nodeName="plain-0"), "spec.nodeName: the choice of a node"),
    "a share of NFS": (
        mounted(nfs={"server": "10.0.0.1", "path": "/"}),
        "spec.volumes[disk].nfs: nfs is not permitted; nfs in permits.volumes",
    ),
    "a driver of storage": (
        mounted(csi={"driver": "any.example.com"}),
        "spec.volumes[disk].csi: csi is not permitted; csi in permits.volumes",
    ),
    "a disk of the network": (
        mounted(iscsi={"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:a", "lun": 0}),
        "spec.volumes[disk].iscsi",
    ),
    "the priority of the system": (
        pod(priorityClassName="system-node-critical"),
        "spec.priorityClassName: system-node-critical",
    ),
    "all of /proc of users of its own": (
        pod({"securityContext": {"procMount": "Unmasked"}}, hostUsers=False),
        "procMount",
    ),
}


def by_sentence(cases: Mapping[str, Any]) -> Any:
    """The values of a table, each under its sentence."""
    return [pytest.param(value, id=sentence) for sentence, value in cases.items()]


def refused_pods() -> dict[str, tuple[Json, str]]:
    """All that `baseline` refuses, with the permission that allows it."""
    return {
        sentence: (body, permit)
        for permit, cases in BASELINE.items()
        for sentence, body in cases.items()
    }
