"""Placement policies as the core's plain values: selectors resolved, scores complete."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from fairway.api.policy import PlacementPolicy, PlacementPolicySpec, ScoreWeight
from fairway.core import model
from fairway.schema.cel.cluster_expressions import cluster_fault
from fairway.view.selectors import Budgets, ClusterFacts, choose

# The scores to which Additive adds the listed ones.
_ADDITIVE = (model.Score(name="Balance"), model.Score(name="Steady"))


def key_of(policy: PlacementPolicy) -> str:
    return f"{policy.metadata.namespace}/{policy.metadata.name}"


def policy_of(policy: PlacementPolicy, clusters: Mapping[str, ClusterFacts]) -> model.Policy:
    spec = policy.spec
    budgets = Budgets()
    return model.Policy(
        key=key_of(policy),
        clusters=choose(spec.selector, clusters, budgets),
        groups=tuple(
            model.Group(
                name=group.name,
                clusters=choose(group.selector, clusters, budgets),
                replicas_max=group.replicas_max,
                copies=group.copies,
            )
            for group in spec.groups
        ),
        tolerations=spec.tolerations,
        spread=tuple(
            model.Spread(
                by=spread.by,
                label=spread.label,
                least=spread.least,
                most=spread.most,
                skew=spread.skew,
                is_preferred=spread.when_unsatisfiable == "Prefer",
            )
            for spread in spec.spread
        ),
        division=model.Division(
            type=spec.division.type,
            weights=tuple(
                (choose(weight.selector, clusters, budgets), weight.weight)
                for weight in spec.division.weights
            ),
            cluster_min=spec.division.per_cluster_min,
            cluster_max=spec.division.per_cluster_max,
            counts_speed=spec.division.count_by == "Speed",
        ),
        ladder=tuple((step.group, step.rung) for step in spec.ladder),
        weighs_price=spec.weigh_price,
        scores=scores_of(spec),
        move_margin=spec.move_margin,
        splits_across_groups=spec.gang_split == "AcrossGroups",
        return_home=model.ReturnHome(
            enabled=spec.return_home.enabled,
            after_seconds=float(spec.return_home.after_seconds),
            per_minute=spec.return_home.replicas_per_minute,
            surge=spec.return_home.surge,
        ),
        rebalance_at=spec.rebalance_at.timestamp() if spec.rebalance_at else 0.0,
        moves_services=spec.when_no_longer_allowed == "Leave",
        number_of_clusters=spec.number_of_clusters,
        faults=tuple(_faults(spec, budgets.too_costly)),
        chosen=tuple(decision.cluster for decision in policy.status.decisions),
    )


def _faults(spec: PlacementPolicySpec, too_costly: Collection[str]) -> Iterator[str]:
    """Expressions that are not valid, or that cost too much for these clusters."""
    selectors = {
        "selector": spec.selector,
        **{f"groups[{at}].selector": group.selector for at, group in enumerate(spec.groups)},
        **{
            f"division.weights[{at}].selector": weight.selector
            for at, weight in enumerate(spec.division.weights)
        },
    }
    for path, selector in selectors.items():
        for at, text in enumerate(selector.expressions if selector is not None else ()):
            if cluster_fault(text):
                yield f"spec.{path}.expressions[{at}]"
            elif text in too_costly:
                yield f"spec.{path}.expressions[{at}] (costs too much)"


def scores_of(spec: PlacementPolicySpec) -> tuple[model.Score, ...]:
    """The scores in force: those listed, added to Steady and Balance where the policy says so."""
    listed = tuple(_score(score) for score in spec.scores)
    if spec.score_mode == "Exact":
        return listed
    named = {score.name for score in listed if score.is_built_in}
    return (*(score for score in _ADDITIVE if score.name not in named), *listed)


def _score(score: ScoreWeight) -> model.Score:
    return model.Score(
        name=score.built_in or score.scorer,
        is_built_in=score.built_in is not None,
        item=score.item,
        resource=score.resource,
        flavor=score.flavor,
        weight=score.weight,
        missing=score.missing,
    )


DEFAULT = model.Policy(key="", scores=_ADDITIVE)
