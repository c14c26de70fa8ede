"""The objects that run a hub: its pods, their network access, and their disruption budget."""

from __future__ import annotations

from fairway.api.meta import JsonObject
from fairway.api.names import AUTHORITY
from fairway.deploy.rights import HUB
from fairway.deploy.settings import SYSTEM, Settings

PORT = 7878
REPLICA_PORT = 7879  # for other replicas only
# A Secret made by people: tokens.csv, metrics for Prometheus, and files of a sign-in provider and
# of a collector of traces.
TOKENS = "fairway-tokens"
SELECTOR = {"app.kubernetes.io/name": "fairway", "app.kubernetes.io/component": "hub"}
_USER = 65532
_DATA = "/var/lib/fairway"
_TOKENS_AT = "/etc/fairway/tokens"
_GRACE_SECONDS = 30
_API_PORTS = (443, 6443)  # ports of API servers, the hub's own and those of members
# The hub refuses files that others can read, and a Secret's files are readable by its group.
_FILES = ("tokens.csv", "oidc-client-secret", "oidc-ca.crt", "otlp-headers", "otlp-ca.crt")
_PREPARE = (
    f"mkdir -p -m 700 {_DATA}/hub && for one in {' '.join(_FILES)}; do "
    f"if [ -e {_TOKENS_AT}/$one ]; then "
    f"install -m 600 {_TOKENS_AT}/$one {_DATA}/hub/$one; fi; done"
)


def namespace_of(name: str) -> JsonObject:
    # Its pods need nothing that the strictest standard forbids.
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": labels},
    }


def account(settings: Settings) -> JsonObject:
    metadata = {"name": HUB, "namespace": settings.namespace}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def authority() -> JsonObject:
    """An empty Secret: the first replica stores the certificate authority there that all share."""
    metadata = {"name": AUTHORITY, "namespace": SYSTEM}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


def deployment(settings: Settings) -> JsonObject:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(settings),
        "spec": {
            "replicas": settings.replicas,
            "selector": {"matchLabels": SELECTOR},
            # A new replica starts before an old one stops; only one ever leads.
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": SELECTOR}, "spec": _pod(settings)},
        },
    }


def _pod(settings: Settings) -> JsonObject:
    prepare = {
        "name": "prepare",
        "image": settings.image,
        "command": ["sh", "-c", _PREPARE],
        "resources": {
            "requests": {"cpu": "10m", "memory": "16Mi"},
            "limits": {"memory": "64Mi"},
        },
        "securityContext": _security_context(),
        "volumeMounts": [_mount("data", _DATA), {**_mount("tokens", _TOKENS_AT), "readOnly": True}],
    }
    return {
        "serviceAccountName": HUB,
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": SELECTOR},
            }
        ],
        "initContainers": [prepare],
        "containers": [_container(settings)],
        "volumes": [
            {"name": "data", "emptyDir": {"sizeLimit": "2Gi"}},
            {"name": "temporary", "emptyDir": {"sizeLimit": "1Gi"}},
            {
                "name": "tokens",
                "secret": {"secretName": TOKENS, "optional": True, "defaultMode": 0o440},
            },
        ],
    }


def _container(settings: Settings) -> JsonObject:
    return {
        "name": "hub",
        "image": settings.image,
        "args": [
            "up",
            "--store=kubernetes",
            f"--data={_DATA}/hub",
            "--address=0.0.0.0",
            f"--port={PORT}",
            f"--host-name={HUB}.{settings.namespace}.svc",
            "--replica-address=$(POD_ADDRESS)",
            f"--replica-port={REPLICA_PORT}",
            "--log-format=json",
            *settings.options,
        ],
        "env": [{"name": "POD_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [
            {"name": "https", "containerPort": PORT},
            {"name": "replicas", "containerPort": REPLICA_PORT},
        ],
        "resources": {
            "requests": {"cpu": settings.cpu, "memory": settings.memory},
            "limits": {"memory": settings.memory},
        },
        # It waits until the server knows the kinds before it listens.
        "startupProbe": {**_probe("/healthz"), "periodSeconds": 5, "failureThreshold": 60},
        "livenessProbe": {**_probe("/healthz"), "periodSeconds": 10, "failureThreshold": 6},
        "readinessProbe": {**_probe("/readyz"), "periodSeconds": 5, "failureThreshold": 3},
        "securityContext": _security_context(),
        "volumeMounts": [_mount("data", _DATA), _mount("temporary", "/tmp")],  # noqa: S108 - a volume of its own
    }


def _probe(path: str) -> JsonObject:
    return {
        "httpGet": {"path": path, "port": "https", "scheme": "HTTPS"},
        "timeoutSeconds": 5,
    }


def _security_context() -> JsonObject:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def _mount(name: str, path: str) -> JsonObject:
    return {"name": name, "mountPath": path}


def service(settings: Settings) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(settings),
        "spec": {
            "selector": SELECTOR,
            # Several requests of one page then go to the same replica.
            "sessionAffinity": "ClientIP",
            "ports": [{"name": "https", "port": 443, "targetPort": "https"}],
        },
    }


def disruption_budget(settings: Settings) -> JsonObject:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(settings),
        # A single replica may still be moved: the fleet runs without a hub for a while.
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": SELECTOR}},
    }


def network_policy(settings: Settings) -> JsonObject:
    """Pods of the cluster reach the hub's port, and replicas each other's.

    The hub reaches DNS and API servers.
    """
    replicas = {"ports": [{"protocol": "TCP", "port": REPLICA_PORT}]}
    others = [{"podSelector": {"matchLabels": SELECTOR}}]
    names = [{"protocol": item, "port": 53} for item in ("UDP", "TCP")]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata(settings),
        "spec": {
            "podSelector": {"matchLabels": SELECTOR},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {
                    "from": [{"namespaceSelector": {}}],
                    "ports": [{"protocol": "TCP", "port": PORT}],
                },
                {"from": others, **replicas},
            ],
            "egress": [
                {"ports": names},
                {"to": others, **replicas},
                {"ports": [{"protocol": "TCP", "port": port} for port in _API_PORTS]},
            ],
        },
    }


def _metadata(settings: Settings) -> JsonObject:
    return {"name": HUB, "namespace": settings.namespace, "labels": dict(SELECTOR)}
