"""Clusters chosen by a policy alone, without a workload: "choose N and say which".

Other systems act on the choice, so it is stable. A chosen cluster stays unless another is better by
the policy's margin, or the cluster may no longer be used. A taint that only repels new pods, or a
cluster that is closed for a while, does not undo a choice. An invalid policy, or one whose spread
rules cannot hold, keeps its last valid choice and says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairway.core.clusters.candidates import (
    Avoided,
    Candidates,
    Closed,
    NoDomain,
    NotSelected,
    Refusal,
    Tainted,
    candidates,
    evicts,
    group_of,
)
from fairway.core.clusters.domain_sets import Option
from fairway.core.clusters.ranking import BUILT_IN, Ranked, ScoreFacts, rank
from fairway.core.clusters.spread import domains, select
from fairway.core.model import Policy, Spread
from fairway.core.nodes import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    cluster: str
    group: str = ""
    score: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The chosen clusters, best first, and what is wrong."""

    chosen: tuple[Chosen, ...]
    missing: int = 0  # how many more were wanted
    unmet: tuple[Spread, ...] = ()  # required rules that cannot hold
    faults: tuple[str, ...] = ()  # invalid fields of the policy
    refused: tuple[tuple[str, Refusal], ...] = ()
    changes_at: float | None = None


def choose(
    policy: Policy,
    clusters: Mapping[str, Cluster],
    facts: Mapping[str, ScoreFacts],
    now: float,
) -> Choice:
    """Chooses clusters for a policy: as many as it asks for, else all it allows.

    `policy.chosen` is the last choice.
    """
    result = candidates(None, policy, None, clusters, now)
    staying = _staying(policy, clusters, result)
    allowed = sorted({*result.allowed, *staying})
    wanted = len(allowed) if policy.number_of_clusters is None else policy.number_of_clusters
    faults = _faults(policy)
    if faults:
        # Keeps every chosen cluster that exists, even if the policy would refuse it now.
        return _keep(policy, clusters, [], faults=faults, candidates=result, wanted=wanted)
    ranked = rank(
        (facts[name] for name in allowed),
        policy.scores,
        now,
        current=policy.chosen,
    )
    order = _order(policy, ranked, result.unwelcome)
    options = [
        Option(name=ranked.cluster, domains=domains(clusters[ranked.cluster], policy.spread))
        for ranked in order
    ]
    least = max((rule.least for rule in policy.spread if not rule.is_preferred), default=0)
    selection = select(options, policy.spread, max(wanted, least))
    if selection.unmet:
        # What only this policy refuses now stays; what is tainted or gone does not.
        edited = (
            name for name, refusal in result.refused if isinstance(refusal, NoDomain | NotSelected)
        )
        kept = {name: clusters[name] for name in (*allowed, *edited)}
        return _keep(policy, kept, ranked, unmet=selection.unmet, candidates=result, wanted=wanted)
    chosen = [ranked for ranked in order if ranked.cluster in selection.chosen]
    return Choice(
        chosen=tuple(_choose(ranked, policy) for ranked in chosen),
        missing=max(wanted - len(chosen), 0),
        refused=result.refused,
        changes_at=result.changes_at,
    )


def _staying(
    policy: Policy, clusters: Mapping[str, Cluster], candidates: Candidates
) -> tuple[str, ...]:
    """Chosen clusters that take no new pods for now, but need not be left."""
    refused = dict(candidates.refused)
    return tuple(
        name
        for name in policy.chosen
        if name in clusters
        and isinstance(refused.get(name), Tainted | Closed | Avoided)
        and not evicts(refused[name])
    )


def _order(policy: Policy, ranked: list[Ranked], unwelcome: frozenset[str]) -> list[Ranked]:
    """Sorts by group, unwelcome clusters last, then by total; chosen clusters get a bonus.

    The bonus is one point less than the margin, and a chosen cluster wins ties. So another cluster
    replaces it from the margin on, as in `ranking.is_better`.
    """
    position = {group.name: index for index, group in enumerate(policy.groups)}
    bonus = max(policy.move_margin, 1) - 1

    def key(pair: Ranked) -> tuple[int, bool, int, bool, str]:
        is_chosen = pair.cluster in policy.chosen
        group = group_of(pair.cluster, policy) or ""
        return (
            position.get(group, 0),
            pair.cluster in unwelcome,
            -(pair.total + (bonus if is_chosen else 0)),
            not is_chosen,
            pair.cluster,
        )

    return sorted(ranked, key=key)


def _faults(policy: Policy) -> tuple[str, ...]:
    faults = list(policy.faults)
    if policy.number_of_clusters is not None and policy.number_of_clusters < 1:
        faults.append("numberOfClusters")
    for index, rule in enumerate(policy.spread):
        if (rule.most is not None and rule.most < rule.least) or (
            not rule.is_preferred
            and policy.number_of_clusters is not None
            and rule.least > policy.number_of_clusters
        ):
            faults.append(f"spread[{index}].least")
        if rule.by == "Label" and not rule.label:
            faults.append(f"spread[{index}].label")
    for index, score in enumerate(policy.scores):
        if score.is_built_in and score.name not in BUILT_IN:
            faults.append(f"scores[{index}].builtIn")
        if not -10 <= score.weight <= 10:
            faults.append(f"scores[{index}].weight")
    return tuple(faults)


def _keep(
    policy: Policy,
    clusters: Mapping[str, Cluster],
    ranked: list[Ranked],
    *,
    candidates: Candidates,
    wanted: int,
    unmet: tuple[Spread, ...] = (),
    faults: tuple[str, ...] = (),
) -> Choice:
    """The last choice, as far as it is among `clusters`."""
    known = {ranked_cluster.cluster: ranked_cluster for ranked_cluster in ranked}
    chosen = tuple(
        _choose(known.get(name, Ranked(name, 0)), policy)
        for name in policy.chosen
        if name in clusters
    )
    return Choice(
        chosen=chosen,
        missing=max(wanted - len(chosen), 0),
        unmet=unmet,
        faults=faults,
        refused=candidates.refused,
        changes_at=candidates.changes_at,
    )


def _choose(ranked: Ranked, policy: Policy) -> Chosen:
    return Chosen(
        cluster=ranked.cluster, group=group_of(ranked.cluster, policy) or "", score=ranked.total
    )
