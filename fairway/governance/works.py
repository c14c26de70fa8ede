"""What a work carries of fleet policies, and what its agent refuses by them.

Works are decided by the hub; an agent checks again, so that a work that was changed on the way, or
decided on outdated labels of the cluster, does not start. What already runs is left alone: the hub
decides whether it stops. So of a changed work only what it adds is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fairway.api.cluster import Mirror
from fairway.api.governance import FleetPolicySpec, Violation
from fairway.api.meta import ClusterSelector
from fairway.api.work import WorkPolicy, WorkSpec
from fairway.governance.cluster_selectors import ClusterFacts, chosen
from fairway.governance.rules import Subject, template_violations
from fairway.kinds.profile import mirror_image

_POLICIES_MOST = 64  # in a work; the hub checks all
_REGISTRIES_MOST = 256


def work_policies(
    specs: Mapping[str, FleetPolicySpec], mirrors: tuple[Mirror, ...], *, has_template: bool
) -> tuple[WorkPolicy, ...]:
    """The rules that the agent of a cluster with these mirrors checks, of policies by name.

    Without a template the hub itself generated the manifests, which run nothing.
    """
    made = (
        WorkPolicy(
            name=name,
            clusters=specs[name].clusters,
            registries=_mirrored(specs[name].registries, mirrors) if has_template else (),
            kinds=specs[name].kinds if has_template else (),
        )
        for name in sorted(specs)
    )
    return tuple(policy for policy in made if policy != WorkPolicy(name=policy.name))[
        :_POLICIES_MOST
    ]


def _mirrored(registries: Sequence[str], mirrors: tuple[Mirror, ...]) -> tuple[str, ...]:
    """Registries, and where the cluster pulls their images from instead."""
    result = dict.fromkeys(registries)
    for registry in registries:
        result[mirror_image(registry, mirrors)] = None
        for mirror in mirrors:
            if mirror.prefix.startswith(registry):
                result[mirror.replacement] = None
    return tuple(result)[:_REGISTRIES_MOST]


def refusals(
    spec: WorkSpec, before: WorkSpec | None, cluster: ClusterFacts | None
) -> list[Violation]:
    """What the policies of a work do not allow, and `before` did not have.

    `before` is the work as it runs. The place is checked where it begins, if it is known.
    """
    if spec.tombstone or not spec.policies:
        return []
    is_new = before is None or before.attempt != spec.attempt
    known = set[Violation]() if is_new or before is None else set(_broken(spec.policies, before))
    broken = [violation for violation in _broken(spec.policies, spec) if violation not in known]
    if is_new and cluster is not None:
        broken.extend(_wrong_places(spec.policies, cluster))
    return broken


def _broken(policies: Iterable[WorkPolicy], spec: WorkSpec) -> Iterator[Violation]:
    subject = Subject(manifests=[manifest.object for manifest in spec.manifests])
    for policy in policies:
        yield from template_violations(policy.name, policy.registries, policy.kinds, subject)


def _wrong_places(policies: Iterable[WorkPolicy], cluster: ClusterFacts) -> Iterator[Violation]:
    for policy in policies:
        is_free = policy.clusters == ClusterSelector()
        if not is_free and not chosen(policy.clusters, {cluster.name: cluster}):
            yield Violation(policy=policy.name, rule="clusters", what=cluster.name)
