"""Why one workload waits, all of it, and its one place of English.

`core.explain` works these out on request; nothing of it is stored. Programs read `render`,
people read `sentence`: what it needs, where the least is missing, what its queue says, when it is
expected to start, and what would let it start now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from fairway.api.amounts import Quantity
from fairway.api.reasons import Code, Reason, missing_words
from fairway.api.reasons import sentence as reason_sentence

_TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a workload needs: accelerators of a flavor, or pods where it asks for none."""

    nanos: int
    what: str  # flavor, else resource, else pods
    clusters_max: int = 1  # in how many clusters it may be; 0: any number

    def __str__(self) -> str:
        amount = Quantity(self.nanos)
        between = " " if self.what in ("pod", "pods") else f" {_TIMES} "
        return f"{amount}{between}{self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """A cluster and what is missing there, on the flavors of which the least is."""

    cluster: str
    free_nanos: int  # of what it needs, as far as its pods could use it
    short_nanos: int  # 0: there is enough, but not where its pods could be together
    fits: bool = False  # there is enough, and together
    flavor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A small change that would let it start now."""

    kind: Literal["Alternative", "Flavor", "FewerPods", "Quota"]
    name: str = ""  # of the alternative, flavor or queue
    needs: Needs | None = None  # what it would take then
    short: tuple[tuple[str, int], ...] = ()  # (resource, nanos) of quota that it lacks


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorePoints:
    """One score of one cluster."""

    name: str
    item: str = ""
    value: int
    weight: int
    is_missing: bool = False  # unknown or expired: the value is the default
    age_seconds: float | None = None  # since a scorer measured it; also of one that is expired
    measured: str = ""  # before it was scaled
    samples: int = 0

    def render(self) -> dict[str, Any]:
        rendered: dict[str, Any] = {"name": self.name, "value": self.value, "weight": self.weight}
        return rendered | _without_empty(
            item=self.item,
            missing=self.is_missing,
            ageSeconds=None if self.age_seconds is None else round(self.age_seconds),
            measured=self.measured,
            samples=self.samples,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredCluster:
    """A cluster with its total, and the scores that make it up."""

    cluster: str
    total: int
    points: tuple[ScorePoints, ...]

    def render(self) -> dict[str, Any]:
        return {
            "cluster": self.cluster,
            "total": self.total,
            "scores": [points.render() for points in self.points],
            "message": score_words(self.points),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything there is to say on one workload."""

    now: float
    workload: str
    state: Literal["Runs", "Starts", "Waits", "Impossible"]
    queue: str
    clusters: tuple[str, ...] = ()  # where it runs or starts
    needs: Needs | None = None
    position: int = 0  # in its queue, from 1; 0: it does not wait
    waiting: int = 0  # how many wait in its queue
    nearest: Nearest | None = None  # the first place, where it is room that it lacks
    places: tuple[Nearest, ...] = ()  # clusters that may take it, those that lack least first
    ladder: tuple[tuple[str, str], ...] = ()  # (group, rung) in the order in which they are tried
    quota: Reason | None = None  # why its queue does not allow it
    reasons: tuple[Reason, ...] = ()  # for each step of the ladder and cluster
    start: float | None = None
    earliest: float | None = None
    latest: float | None = None
    because: str = ""  # whose end lets it start
    is_guess: bool = False  # the start depends on a run time that is not known
    remedies: tuple[Remedy, ...] = ()
    ranking: tuple[ScoredCluster, ...] = ()  # clusters it may use, best first, if scores say more

    def render(self) -> dict[str, Any]:
        """The explanation for programs, with its sentence."""
        rendered: dict[str, Any] = {
            "now": self.now,
            "workload": self.workload,
            "state": self.state,
            "queue": self.queue,
        }
        rendered |= _without_empty(
            clusters=list(self.clusters),
            needs=_needs(self.needs) if self.needs else None,
            position=self.position,
            waiting=self.waiting,
            nearest=_nearest(self.nearest) if self.nearest else None,
            places=[_nearest(place) for place in self.places],
            ladder=[_without_empty(group=group, rung=rung) for group, rung in self.ladder],
            quota=self.quota.render() if self.quota else None,
            expected=_without_empty(
                start=self.start,
                earliest=self.earliest,
                latest=self.latest,
                because=self.because,
                isGuess=self.is_guess,
            ),
            reasons=[reason.render() for reason in self.reasons],
            remedies=[_remedy(remedy) for remedy in self.remedies],
            ranking=[scored.render() for scored in self.ranking],
        )
        rendered["message"] = sentence(self)
        return rendered


def _without_empty(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value}


def _needs(needs: Needs) -> dict[str, Any]:
    return {"amount": str(Quantity(needs.nanos)), "of": needs.what}


def _nearest(nearest: Nearest) -> dict[str, Any]:
    rendered = {
        "cluster": nearest.cluster,
        "free": str(Quantity(nearest.free_nanos)),
        "short": str(Quantity(nearest.short_nanos)),
    }
    return rendered | _without_empty(fits=nearest.fits, flavor=nearest.flavor)


def _remedy(remedy: Remedy) -> dict[str, Any]:
    result = {"kind": remedy.kind, "message": _remedy_sentence(remedy)}
    return result | _without_empty(
        name=remedy.name,
        needs=_needs(remedy.needs) if remedy.needs else None,
        short={resource: str(Quantity(nanos)) for resource, nanos in remedy.short},
    )


# English.

# What keeps a workload from being looked at; each says everything by itself.
_STANDING = (
    Code.HELD,
    Code.BACK_OFF,
    Code.TEMPLATE_REFUSED,
    Code.NO_QUEUE,
    Code.QUEUE_HELD,
    Code.QUEUE_BROKEN,
    Code.NOT_A_SUBMITTER,
    Code.POLICY_VIOLATED,
    Code.DEVICES_NOT_COUNTED,
    Code.PODS_NOT_COUNTED,
    Code.BEHIND_HEAD,
    Code.QUEUE_FULL,
    Code.CLAIMS_EXCEEDED,
    Code.USER_LIMIT_EXCEEDED,
    Code.NO_FLAVOR,
    Code.NO_CLUSTER,
    Code.RESERVED,
    Code.HOLDING_OUT,
)


def sentence(explanation: Explanation) -> str:
    """An explanation in English."""
    match explanation.state:
        case "Runs":
            return f"runs{_where(explanation)}"
        case "Starts":
            return f"starts now{_where(explanation)}"
        case "Impossible":
            return f"can never start: {reason_sentence(explanation.reasons[0])}"
        case _:
            return "; ".join(_parts(explanation))


def _where(explanation: Explanation) -> str:
    names = [cluster for cluster in explanation.clusters if cluster]
    return f" in {' and '.join(names)}" if names else ""


def _parts(explanation: Explanation) -> Iterator[str]:
    needs, nearest = explanation.needs, explanation.nearest
    if needs is not None:
        yield f"needs {needs}" + (" in one cluster" if needs.clusters_max == 1 else "")
    if nearest is not None:
        short = f"{Quantity(nearest.short_nanos)} short" if nearest.short_nanos else "not together"
        is_other = needs is not None and nearest.flavor not in ("", needs.what)
        free = f"{Quantity(nearest.free_nanos)}{f' {nearest.flavor}' if is_other else ''} free"
        yield f"nearest is {nearest.cluster} with {free} ({short})"
    said: list[str] = []
    for reason in explanation.reasons:
        text = reason_sentence(reason)
        if reason.code in _STANDING and text not in said:
            said.append(text)
            yield text
    if explanation.quota is not None:
        yield reason_sentence(explanation.quota)
    elif nearest is not None:
        yield f"queue {explanation.queue} has quota for it"
    if explanation.position > 1:
        before = explanation.position - 1
        verb = "is" if before == 1 else "are"
        yield f"{before} {verb} ahead of it in queue {explanation.queue}"
    if explanation.start is not None:
        yield _expected(explanation, explanation.start)
    for remedy in explanation.remedies:
        yield _remedy_sentence(remedy)


def _expected(explanation: Explanation, start: float) -> str:
    when = f"expected start {_clock(start, explanation.now)}"
    if explanation.is_guess:
        because = f" when {explanation.because} ends" if explanation.because else ""
        return f"{when}{because}, which is a guess: not all run times are known"
    if explanation.latest is None:
        when += " or later"
    else:
        earliest = start if explanation.earliest is None else explanation.earliest
        error = max(explanation.latest - start, start - earliest)
        when += f" ± {_span(error)}" if error >= 1 else ""
    return f"{when} when {explanation.because} ends" if explanation.because else when


def _remedy_sentence(remedy: Remedy) -> str:
    match remedy.kind:
        case "Alternative":
            return f"starts now if it takes {remedy.name} without waiting"
        case "Flavor":
            return f"starts now if you accept {remedy.needs}"
        case "FewerPods":
            return f"starts now with {remedy.needs}"
        case _:
            return f"starts now if queue {remedy.name} gets {missing_words(remedy.short)}"


def score_words(points: Iterable[ScorePoints]) -> str:
    """The scores of a cluster, weights and ages where they matter."""
    return ", ".join(_score_words(each) for each in points)


def _score_words(points: ScorePoints) -> str:
    name = f"{points.name}/{points.item}" if points.item else points.name
    weight = f" {_TIMES} {points.weight}" if points.weight != 1 else ""
    said = f"{name} {points.value}{weight}"
    if points.is_missing:
        return f"{said} ({'expired' if points.age_seconds is not None else 'missing'})"
    if points.age_seconds is None:
        return said
    measured = f"measured {points.measured}, " if points.measured else ""
    return f"{said} ({measured}{_span(points.age_seconds)} old)"


def _clock(moment: float, now: float) -> str:
    """`14:05`, with the date where it is another day; all in UTC."""
    at, today = datetime.fromtimestamp(moment, UTC), datetime.fromtimestamp(now, UTC)
    return at.strftime("%H:%M" if at.date() == today.date() else "%Y-%m-%d %H:%M")


def _span(seconds: float) -> str:
    """`10 min`."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size or (unit == "min" and seconds >= size):
            return f"{round(seconds / size)} {unit}"
    return f"{round(seconds)} s"
