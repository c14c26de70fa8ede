"""The revision of a service that a cluster gets during a rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from fairway.api.meta import JsonObject
from fairway.api.work import Work
from fairway.api.workload import Template, Workload
from fairway.controllers.rollouts.register import Stage
from fairway.kinds.decision import REVISION
from fairway.kinds.registry import KnownKinds
from fairway.kinds.updates import Pace, mark_of

# By cluster; a missing cluster waits. None: the service has no Rollout.
Stages = Mapping[str, Stage] | None


def as_staged(workload: Workload, stages: Stages, cluster: str) -> Workload:
    """The workload with the template of the revision for a cluster."""
    if stages is None or cluster not in stages:
        return workload
    return with_template(workload, stages[cluster].template)


def with_template(workload: Workload, template: Template) -> Workload:
    return replace(workload, spec=replace(workload.spec, template=template))


def manifests_in_use(workload: Workload, stages: Stages) -> Sequence[JsonObject]:
    """The manifests of all revisions that run in some cluster."""
    templates = templates_in_use(workload, stages)
    return [manifest for template in templates for manifest in template.manifests]


def templates_in_use(workload: Workload, stages: Stages) -> list[Template]:
    """The templates of all revisions that run in some cluster."""
    templates = [workload.spec.template] if workload.spec.template else []
    if stages is not None:
        every = [stages[cluster] for cluster in sorted(stages)]
        staged = [stage.template for stage in every]
        staged += [stage.second.template for stage in every if stage.second is not None]
        templates = [template for at, template in enumerate(staged) if template not in staged[:at]]
    return templates


def pace_of(
    workload: Workload, stages: Stages, before: Work | None, *, cluster: str, kinds: KnownKinds
) -> Pace:
    """The pace of its Rollout. Without one, pods keep their mark, so that none restarts."""
    if stages is not None:
        return stages[cluster].pace
    mark = before.metadata.annotations.get(REVISION, "") if before is not None else ""
    template = workload.spec.template
    if not mark or template is None or mark_of(template.manifests, kinds) != mark:
        return Pace()
    return Pace(mark=mark)
