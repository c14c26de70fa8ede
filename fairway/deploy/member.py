"""The objects of a member cluster: an account for the agent, and its permissions."""

from __future__ import annotations

from fairway.agent.drivers.kubernetes.rights import AGENT, agent_role, tenant_role
from fairway.api.meta import JsonObject
from fairway.deploy.rights import RBAC
from fairway.kinds.permitted import HARMLESS
from fairway.kinds.registry import built_in
from fairway.store.keys import resource_of


def objects(namespace: str, *, may_act: bool) -> list[JsonObject]:
    """The objects of a member; without `may_act` its agent only reads, as for the mode Observe."""
    kinds = _kinds()
    account = {"name": AGENT, "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        agent_role(kinds, may_act=may_act),
        *([tenant_role(kinds)] if may_act else []),
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": AGENT},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": AGENT},
            "subjects": [{"kind": "ServiceAccount", **account}],
        },
    ]


def _kinds() -> list[tuple[str, str]]:
    """The kinds that works may contain, as groups and plurals."""
    running = (resource_of(*pair) for pair in built_in().names())
    beside = (resource_of(f"{group}/v1", kind) for group, kind in HARMLESS)
    return sorted(
        {(resource_key.group, resource_key.plural) for resource_key in (*running, *beside)}
    )
