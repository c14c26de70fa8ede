"""Tries a scorer once: what it yields now, and which choices of policies that would change.

Nothing is kept: neither scores nor what is smoothed.
"""

from __future__ import annotations

from typing import Any

from fairway.api.names import namespace_and_name
from fairway.api.policy import PlacementPolicy
from fairway.api.scores import ClusterScore, Scorer, validity
from fairway.controllers.context import Context
from fairway.controllers.scheduling.questions import PolicyChoices
from fairway.controllers.scheduling.scheduler import Scheduler
from fairway.controllers.scores.running import Runner
from fairway.controllers.scores.written import Run
from fairway.core.measured import MeasuredScore, MeasuredScores
from fairway.core.modes.policy_clusters import PolicyChoice


class Trials:
    """Tries scorers that exist, and such as do not exist yet."""

    def __init__(self, context: Context, *, runner: Runner, scheduler: Scheduler) -> None:
        self._cache = context.cache
        self._runner = runner
        self._scheduler = scheduler

    async def try_out(self, scorer: Scorer) -> dict[str, Any]:
        """What one run yields, by cluster, and what it would change."""
        run = await self._runner.run(scorer.spec, {})
        now = await self._scheduler.ask(PolicyChoices())
        then = await self._scheduler.ask(PolicyChoices(_measured(scorer, run)))
        return {
            "scorer": scorer.metadata.name,
            **({"fault": run.fault} if run.fault else {}),
            "clusters": self._clusters(scorer, run),
            "faults": [
                {"cluster": cluster, "message": message}
                for cluster, message in sorted(run.faults.items())
            ],
            "policies": list(self._changed(scorer.metadata.name, now, then)),
        }

    def _clusters(self, scorer: Scorer, run: Run) -> list[dict[str, Any]]:
        rows = []
        for (cluster, item), reading in run.readings.items():
            row: dict[str, Any] = {
                "cluster": cluster,
                "measured": f"{reading.measured:.6g}",
                "value": reading.score,
                "samples": reading.samples,
            }
            stored = self._stored(scorer.metadata.name, cluster, item)
            rows.append(
                row | ({"item": item} if item else {}) | ({} if stored is None else {"now": stored})
            )
        return rows

    def _stored(self, scorer: str, cluster: str, item: str) -> int | None:
        score = self._cache.get(ClusterScore, cluster)
        values = score.spec.values if score is not None else ()
        return next(
            (value.value for value in values if (value.scorer, value.item) == (scorer, item)), None
        )

    def _changed(
        self, scorer: str, now: list[PolicyChoice], then: list[PolicyChoice]
    ) -> list[dict[str, Any]]:
        """Policies that use the scorer, with what they choose now and would choose."""
        after = {choice.policy: choice for choice in then}
        rows = []
        for choice in now:
            namespace, name = namespace_and_name(choice.policy)
            policy = self._cache.get(PlacementPolicy, name, namespace)
            if policy is None or all(score.scorer != scorer for score in policy.spec.scores):
                continue
            rows.append(
                {
                    "policy": choice.policy,
                    "chooses": choice.render()["clusters"],
                    "wouldChoose": after[choice.policy].render()["clusters"],
                }
            )
        return rows


def _measured(scorer: Scorer, run: Run) -> dict[str, MeasuredScores]:
    """The scores of a run, as the core sees them."""
    valid_until = run.at + validity(scorer.spec).total_seconds()
    result: dict[str, dict[tuple[str, str], MeasuredScore]] = {}
    for (cluster, item), reading in run.readings.items():
        measured = MeasuredScore(reading.score, valid_until, reading.at)
        result.setdefault(cluster, {})[scorer.metadata.name, item] = measured
    return dict(result)
