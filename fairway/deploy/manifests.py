"""All objects of an installation, in the order in which they must be applied."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import yaml

from fairway.api import crds
from fairway.api.meta import JsonObject
from fairway.deploy import hub_objects, monitoring, rights
from fairway.deploy.settings import SYSTEM, Settings
from fairway.store.kubernetes import (
    checked_writes,
    creators,
    deprecated,
    held_back,
    submitters,
)
from fairway.store.kubernetes.admission import binding_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """An object, and the setting that it requires; "": it is always included."""

    object: JsonObject
    only_with: str = ""


def objects(settings: Settings, *, with_kinds: bool = True) -> list[JsonObject]:
    """The objects that make a cluster a hub."""
    kinds = crds.for_kubernetes() if with_kinds else []
    home = hub_objects.namespace_of(settings.namespace)
    wanted = [
        part.object
        for part in parts(settings)
        if not part.only_with or getattr(settings, part.only_with)
    ]
    return [*kinds, home, *wanted]


def parts(settings: Settings) -> list[Part]:
    """All objects except the kinds and the hub's own namespace, which Helm handles itself."""
    hub = f"system:serviceaccount:{settings.namespace}:{rights.HUB}"
    home = settings.namespace
    return [
        Part(object=hub_objects.namespace_of(SYSTEM), only_with="apart"),
        Part(object=hub_objects.account(settings)),
        Part(object=hub_objects.authority()),
        Part(object=rights.hub_role()),
        Part(object=rights.binding(settings, rights.HUB)),
        Part(object=rights.secrets_role()),
        Part(object=rights.binding(settings, rights.SECRETS, home)),
        Part(object=rights.binding(settings, rights.SECRETS), only_with="all_secrets"),
        Part(object=rights.term_role()),
        Part(object=rights.term_binding(settings)),
        *(Part(object=entry) for entry in rights.roles_of_people()),
        *(
            Part(object=entry, only_with="admission_policy")
            for policy in (creators.policy(hub), submitters.policy(hub))
            for entry in (policy, binding_of(policy))
        ),
        *(
            Part(object=entry, only_with="admission_policy" if held_back.is_mutating(entry) else "")
            for pair in held_back.pairs(hub)
            for entry in pair
        ),
        *(Part(object=entry) for entry in deprecated.warning(crds.definitions())),
        *(
            Part(object=entry, only_with="admission_webhook")
            for entry in checked_writes.confinement()
        ),
        Part(object=checked_writes.placeholder(), only_with="admission_webhook"),
        Part(object=rights.webhook_role(), only_with="admission_webhook"),
        Part(object=rights.binding(settings, rights.WEBHOOK), only_with="admission_webhook"),
        Part(object=hub_objects.network_policy(settings), only_with="network_policy"),
        Part(object=hub_objects.disruption_budget(settings)),
        Part(object=hub_objects.service(settings)),
        Part(object=hub_objects.deployment(settings)),
        Part(object=monitoring.service_monitor(settings), only_with="monitoring"),
        Part(object=monitoring.alert_rules(settings), only_with="monitoring"),
        Part(object=monitoring.dashboard(settings), only_with="monitoring"),
    ]


class _Dumper(yaml.SafeDumper):
    """Writes values without anchors, and multi-line text as such."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def as_yaml(items: Iterable[JsonObject]) -> str:
    """Objects as documents of one YAML text, each with its name in front, for kubectl."""
    return "".join(f"---\n# {_title(entry)}\n{document(entry)}" for entry in items)


def document(body: JsonObject) -> str:
    text: str = yaml.dump(body, Dumper=_Dumper, sort_keys=False, width=100)
    return text


def _title(body: JsonObject) -> str:
    metadata = body["metadata"]
    where = f" in {metadata['namespace']}" if "namespace" in metadata else ""
    return f"{body['kind']} {metadata['name']}{where}"
