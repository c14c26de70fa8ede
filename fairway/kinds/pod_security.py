"""What the pods of a workload may ask of a cluster, wherever in a manifest they are described.

The rules are those of Pod Security `baseline` in Kubernetes v1.36, and more: no pod chooses its
node, mounts storage by its address, has the priority of the system, or runs as an account that is
not its own.

Operators copy pods from many places of their objects. So fields are found by their names, in any
letter case, in every map of a manifest of any kind: a new kind is checked like the others. Fields
of containers, pods, volumes and security contexts that are not known here are refused, as a later
Kubernetes may give them a meaning. Text is checked too if it holds YAML or JSON.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from fairway.api.cluster import Permits
from fairway.api.documents import ManifestError, read_value
from fairway.api.meta import JsonObject
from fairway.kinds.plain import child, maps_at, text

Host = Literal["HostPath", "HostNetwork", "HostNamespaces", "Privileged", ""]
FAULTS_MAX = 16
_PARAMETER = "{{"  # how Argo begins what it fills in later
_TEXT_MAX = 65_536  # characters of text that are read as YAML, of one manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What a cluster allows the pods of a work."""

    permits: Permits
    accounts: frozenset[str]  # service accounts


Check = Callable[[str, Any, Allowed], Iterator[str]]
# The allowed values of a field; None: all.
Values = tuple[object, ...] | None


# The fields, by their names in lower case.


@dataclass(frozen=True, slots=True)
class _Setting:
    """A field with few allowed values."""

    values: tuple[object, ...]
    what: str = ""  # empty: what the field says
    permit: Host = ""

    def __call__(self, path: str, value: Any, allowed: Allowed) -> Iterator[str]:
        several = value if isinstance(value, list) else [value]
        wrong = [str(item) for item in several if item not in self.values]
        if wrong and self.permit not in allowed.permits.host:
            yield _refusal(path, self.what or ", ".join(wrong), self.permit)


@dataclass(frozen=True, slots=True)
class _Part:
    """A map, or a list of maps, of which all fields are known; some have few allowed values."""

    fields: Mapping[str, Values]
    permit: Host = ""

    def __call__(self, path: str, value: Any, allowed: Allowed) -> Iterator[str]:
        if self.permit in allowed.permits.host:
            return
        if not isinstance(value, list):
            yield from self._faults(path, value, allowed)
            return
        for index, item in enumerate(value):
            yield from self._faults(_item_path(path, index, item), item, allowed)

    def _faults(self, path: str, value: Any, allowed: Allowed) -> Iterator[str]:
        if not isinstance(value, dict):
            return  # of another shape, which no controller reads as this
        for field, item in value.items():
            if item is None:
                continue
            if field not in self.fields:
                yield _unknown(f"{path}.{field}")
            elif (values := self.fields[field]) is not None:
                check = _Setting(values, permit=self.permit)
                yield from check(f"{path}.{field}", item, allowed)


def _known(fields: str, **values: tuple[object, ...]) -> dict[str, Values]:
    return {**dict.fromkeys(fields.split()), **values}


_CONTAINER = _Part(
    _known(
        "name image command args workingDir ports envFrom env resources resizePolicy restartPolicy "
        "restartPolicyRules volumeMounts volumeDevices livenessProbe readinessProbe startupProbe "
        "lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy securityContext "
        "stdin stdinOnce tty targetContainerName "
        "dependencies mirrorVolumeMounts"  # of a step of an Argo workflow
    )
)
_POD = _Part(
    _known(
        "volumes initContainers containers ephemeralContainers restartPolicy "
        "terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy nodeSelector "
        "serviceAccountName serviceAccount automountServiceAccountToken nodeName hostNetwork "
        "hostPID hostIPC shareProcessNamespace securityContext imagePullSecrets hostname subdomain "
        "affinity schedulerName tolerations hostAliases priorityClassName priority dnsConfig "
        "readinessGates runtimeClassName enableServiceLinks preemptionPolicy overhead "
        "topologySpreadConstraints setHostnameAsFQDN os hostUsers schedulingGates resourceClaims "
        "resources hostnameOverride workloadRef schedulingGroup"
    )
)
_SECURITY_CONTEXT = _Part(
    _known(
        "allowPrivilegeEscalation appArmorProfile capabilities fsGroup fsGroupChangePolicy "
        "privileged procMount readOnlyRootFilesystem runAsGroup runAsNonRoot runAsUser "
        "seLinuxChangePolicy seLinuxOptions seccompProfile supplementalGroups "
        "supplementalGroupsPolicy sysctls windowsOptions"
    ),
    "Privileged",
)
_CAPABILITIES = (
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
)
_SYSCTLS = (
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
)
_SELINUX_TYPES = (
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
)
_PROFILE = _Part(_known("localhostProfile", type=("RuntimeDefault", "Localhost")), "Privileged")
_VOLUMES = frozenset(
    {
        "configMap",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
        # Of a Volcano job, whose volumes are claims.
        "mountPath",
        "volumeClaim",
        "volumeClaimName",
    }
)
_SOURCES = frozenset(
    {
        "clusterTrustBundle",
        "configMap",
        "downwardAPI",
        "podCertificate",
        "secret",
        "serviceAccountToken",
    }
)
_OTHER_VOLUMES = _known(
    "awsElasticBlockStore azureDisk azureFile cephfs cinder csi fc flexVolume flocker "
    "gcePersistentDisk gitRepo glusterfs iscsi nfs photonPersistentDisk portworxVolume quobyte rbd "
    "scaleIO storageos vsphereVolume"
)


def _host_path(path: str, value: Any, allowed: Allowed) -> Iterator[str]:
    if "HostPath" not in allowed.permits.host:
        yield _refusal(path, f"{text(value, 'path') or 'a path'} of the node", "HostPath")


def _other_volume(path: str, value: Any, allowed: Allowed) -> Iterator[str]:
    kind = path.rpartition(".")[2]
    if isinstance(value, dict) and kind not in allowed.permits.volumes:
        yield _volume_refusal(path, kind)


def _volumes(path: str, value: Any, allowed: Allowed) -> Iterator[str]:
    """Types of volumes that are not known; those that are known are found by their names."""
    for index, volume in enumerate(value if isinstance(value, list) else ()):
        for kind in volume if isinstance(volume, dict) else ():
            is_known = kind == "name" or kind in _VOLUMES or kind.casefold() in _CHECKS
            if not is_known and kind not in allowed.permits.volumes:
                yield _volume_refusal(f"{_item_path(path, index, volume)}.{kind}", kind)


def _projected(path: str, value: Any, allowed: Allowed) -> Iterator[str]:
    for index, source in enumerate(maps_at(value, "sources")):
        for kind in source:
            if kind not in _SOURCES:
                yield _unknown(f"{path}.sources[{index}].{kind}")


def _template(path: str, value: Any, allowed: Allowed) -> Iterator[str]:
    pod = child(value, "spec")
    if isinstance(pod.get("containers"), list):
        yield from _POD(f"{path}.spec", pod, allowed)


def _account(path: str, value: Any, allowed: Allowed) -> Iterator[str]:
    account = text(value, "name") if isinstance(value, dict) else str(value)
    if account and account not in allowed.accounts:
        yield (
            f"{path}: the service account {account} of the cluster is not permitted; bring one of "
            "your own, or let permits.serviceAccounts of the Cluster name it"
        )


def _priority(path: str, value: Any, allowed: Allowed) -> Iterator[str]:
    if isinstance(value, str) and (value.startswith("system-") or _PARAMETER in value):
        yield f"{path}: {value} may be of the cluster itself; name a class of your own"


def _manifest(path: str, value: Any, allowed: Allowed) -> Iterator[str]:
    if isinstance(value, str) and _PARAMETER in value:
        yield f"{path}: an object with parameters is not permitted, as it is not known here"


def _annotations(path: str, value: Any, allowed: Allowed) -> Iterator[str]:
    for key, item in value.items() if isinstance(value, dict) else ():
        place = f"{path}[{key}]"
        if key == "kubernetes.io/service-account.name":
            yield from _account(place, item, allowed)
        elif _PARAMETER in key:
            yield _refusal(place, "a key with parameters", "")
        elif (
            key.startswith(_PROFILE_ANNOTATIONS)
            and "Privileged" not in allowed.permits.host
            and item not in ("", "runtime/default", "docker/default")
            and not str(item).startswith("localhost/")
        ):
            yield _refusal(place, str(item), "Privileged")


_PROFILE_ANNOTATIONS = (
    "container.apparmor.security.beta.kubernetes.io/",
    "container.seccomp.security.alpha.kubernetes.io/",
    "seccomp.security.alpha.kubernetes.io/",
)
_CHECKS: dict[str, Check] = {
    # Pod Security `baseline`.
    "hostnetwork": _Setting((False,), "the node's network", "HostNetwork"),
    "hostpid": _Setting((False,), "sight of the node's processes", "HostNamespaces"),
    "hostipc": _Setting((False,), "shared memory of the node", "HostNamespaces"),
    "hostport": _Setting((0,), "a port of the node", "HostNetwork"),
    "hostpath": _host_path,
    "httpget": _Part(_known("path port scheme httpHeaders", host=("",)), "HostNetwork"),
    "tcpsocket": _Part(_known("port", host=("",)), "HostNetwork"),
    "securitycontext": _SECURITY_CONTEXT,
    "podsecuritycontext": _SECURITY_CONTEXT,
    "privileged": _Setting((False,), "a privileged container", "Privileged"),
    "hostprocess": _Setting((False,), "a process of the node", "Privileged"),
    "procmount": _Setting(("Default",), "another mount of /proc", "Privileged"),
    "capabilities": _Part(_known("drop", add=_CAPABILITIES), "Privileged"),
    "selinuxoptions": _Part(
        _known("level", type=_SELINUX_TYPES, user=("",), role=("",)), "Privileged"
    ),
    "apparmorprofile": _PROFILE,
    "seccompprofile": _PROFILE,
    "sysctls": _Part(_known("value", name=_SYSCTLS), "Privileged"),
    "windowsoptions": _Part(
        _known("gmsaCredentialSpecName gmsaCredentialSpec runAsUserName hostProcess"), "Privileged"
    ),
    "annotations": _annotations,
    # Whatever else reaches beyond the pods of the workload.
    "nodename": _Setting(("",), "the choice of a node past the scheduler"),
    "priorityclassname": _priority,
    "serviceaccount": _account,
    "serviceaccountname": _account,
    "externalips": _Setting((), "the address of another machine"),
    "adminaccess": _Setting((False,), "access to devices that others use"),
    # Patches and objects that are not checked or counted.
    "podspecpatch": _Setting(("",), "a patch of pods, as nothing counts what it asks for,"),
    "manifest": _manifest,
    "manifestfrom": _Setting((), "an object that is not in the manifest"),
    # Parts of pods, of which all fields must be known.
    "containers": _CONTAINER,
    "initcontainers": _CONTAINER,
    "ephemeralcontainers": _CONTAINER,
    "sidecars": _CONTAINER,
    "template": _template,
    "volumes": _volumes,
    "projected": _projected,
    **dict.fromkeys((name.lower() for name in _OTHER_VOLUMES), _other_volume),
}
# Other fields whose names end so, such as `podPriorityClassName`.
_ENDINGS: dict[str, Check] = {
    "annotations": _annotations,
    "priorityclassname": _priority,
    "securitycontext": _SECURITY_CONTEXT,
    "serviceaccountname": _account,
    "template": _template,
}
_SPARK = ("spark.kubernetes.", "spark.master", "spark.submit.")
_SPARK_HARMLESS = (
    "spark.kubernetes.allocation.",
    "spark.kubernetes.container.image.pullpolicy",
    "spark.kubernetes.executor.deleteontermination",
    "spark.kubernetes.local.dirs.tmpfs",
)
# Maps whose keys are the user's own words.
_FREE_KEYS = ("annotations", "envvars", "labels", "limits", "nodeselector", "requests", "selector")
# Text that only programs in containers read.
_PROGRAMS = frozenset({"args", "command", "entrypoint", "source"})
_CONTENTS = {
    ("v1", "ConfigMap"): ("data", "binaryData"),
    ("v1", "Secret"): ("data", "stringData"),
}
# Text without these words, and without another way to spell them, is not read: YAML may write a key
# with escapes, or as binary data by its tag.
_WORDS = re.compile(
    rf"\\|!!|!<|%TAG|\b({'|'.join(map(re.escape, _CHECKS))}|\w*({'|'.join(_ENDINGS)}))\b|spark\.",
    re.IGNORECASE,
)


def pod_faults(manifest: JsonObject, allowed: Allowed) -> list[str]:
    """What a manifest asks for that its cluster does not allow, each with its field's path."""
    return list(dict.fromkeys(islice(_faults(manifest, allowed), FAULTS_MAX)))


def _faults(manifest: JsonObject, allowed: Allowed) -> Iterator[str]:
    kind = (text(manifest, "apiVersion"), text(manifest, "kind"))
    left_out = ("status", *_CONTENTS.get(kind, ()))
    body = {key: value for key, value in manifest.items() if key not in left_out}
    text_left = _TEXT_MAX
    # Each value with its path, and the last field of the path in lower case.
    todo: deque[tuple[str, str, Any]] = deque([("", "", body)])
    while todo:
        path, field, value = todo.popleft()
        if isinstance(value, dict):
            if (value.get("apiVersion"), value.get("kind")) == ("v1", "Pod"):
                yield from _POD(f"{path}.spec" if path else "spec", value.get("spec"), allowed)
            is_free = field.endswith(_FREE_KEYS)
            for key, item in value.items():
                # As programs in Go compare names, for which a long s is an s.
                name, place = key.casefold(), f"{path}.{key}" if path else key
                if not (is_free and isinstance(item, str)):
                    yield from _field_faults(place, name, item, allowed)
                is_variable = field == "env" and name == "value"
                todo.append((place, "command" if is_variable else name, item))
        elif isinstance(value, list):
            for index, item in enumerate(value):
                todo.append((_item_path(path, index, item), field, item))
        elif isinstance(value, str) and field not in _PROGRAMS and _may_hold_fields(value):
            text_left -= len(value)
            inner = _read(value) if text_left >= 0 else None
            if inner is None:
                yield f"{path}: this text is not YAML, or is too long, and so is not checked"
            else:
                todo.append((path, field, inner))


def _may_hold_fields(value: str) -> bool:
    return ":" in value and _WORDS.search(value) is not None


def _read(value: str) -> JsonObject | list[Any] | None:
    """The map or list that a text holds, or an empty one; None if it is not YAML."""
    with suppress(ManifestError):
        inner = read_value(value)
        return inner if isinstance(inner, dict | list) else []
    return None


def _field_faults(path: str, name: str, value: Any, allowed: Allowed) -> Iterator[str]:
    if value is None:
        return
    check = _CHECKS.get(name)
    if check is None:
        check = next((_ENDINGS[ending] for ending in _ENDINGS if name.endswith(ending)), None)
    if check is not None:
        yield from check(path, value, allowed)
    if name.startswith(_SPARK) and not name.startswith(_SPARK_HARMLESS):
        yield f"{path}: this setting changes pods; use the fields of the driver and the executor"


def _item_path(path: str, index: int, item: Any) -> str:
    return f"{path}[{text(item, 'name') or index}]"


def _refusal(path: str, what: str, permit: Host) -> str:
    how = f"; {permit} in permits.host of the Cluster allows it" if permit else ""
    return f"{path}: {what} is not permitted{how}"


def _volume_refusal(path: str, kind: str) -> str:
    return f"{path}: {kind} is not permitted; {kind} in permits.volumes of the Cluster allows it"


def _unknown(path: str) -> str:
    return f"{path}: is not permitted, as it is not a known field"
