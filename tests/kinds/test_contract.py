"""What every kind promises, in code or by rule, over all samples."""

from __future__ import annotations

import copy
from collections import Counter

import pytest

from fairway.kinds import decision, pod_starts
from fairway.kinds.interface import Announcement, Kind, Pod, PodState
from fairway.kinds.registry import built_in
from fairway.kinds.suspension import is_suspended, suspension_path
from tests.kinds.recorded import Sample, samples

NOW = 1_800_000_000.0
# What serves until it is stopped, beside all that is divided by replicas.
ENDLESS = ("RayCluster", "RayService")
every_sample = pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.name)


def kind_of(sample: Sample) -> Kind:
    found = built_in().of(sample.manifest)
    assert found is not None
    return found


def never_ends(sample: Sample) -> bool:
    kind = kind_of(sample)
    return kind.mode(sample.manifest) == "Divided" or kind.name in ENDLESS


every_sample_that_ends = pytest.mark.parametrize(
    "sample",
    [sample for sample in samples() if not never_ends(sample)],
    ids=lambda sample: sample.name,
)


def states(pods, phase, **given) -> list[PodState]:
    return [
        PodState(
            name=pod.name,
            pod_set=pod.pod_set,
            index=pod.index,
            phase=phase,
            started_at=NOW - 60,
            finished_at=NOW if phase in ("Succeeded", "Failed") else None,
            **given,
        )
        for pod in pods
    ]


def wanted(kind: Kind, manifest: dict) -> dict[str, int]:
    """Pods by pod set that run at a time."""
    times = kind.replicas(manifest)
    return {
        pod_set.name: pod_set.count * (1 if times is None else times)
        for pod_set in kind.pod_sets(manifest)
    }


def templated(kind: Kind, manifest: dict) -> set[str]:
    """Pod sets whose template stands in the manifest; others have theirs in the cluster."""
    return {decision.pod_set_of(template) for template in kind.templates(manifest)}


def first_wave(kind: Kind, manifest: dict) -> list[Pod]:
    """The pods that run at the beginning."""
    left, chosen = dict(wanted(kind, manifest)), []
    for pod in kind.pods(manifest):
        if left[pod.pod_set] > 0:
            left[pod.pod_set] -= 1
            chosen.append(pod)
    return chosen


def played(kind: Kind, manifest: dict, pods: list[PodState]):
    return pod_starts.observe_pods(kind, manifest, pods, now=NOW)


@every_sample
def test_a_sample_can_be_run(sample: Sample) -> None:
    assert kind_of(sample).faults(sample.manifest) == []


@every_sample
def test_no_function_changes_what_it_is_given(sample: Sample) -> None:
    kind, manifest = kind_of(sample), copy.deepcopy(sample.manifest)
    pods = list(kind.pods(manifest))
    for item in ("faults", "mode", "replicas", "pod_sets", "templates", "is_held", "dependencies"):
        getattr(kind, item)(manifest)
    kind.hold(manifest)
    kind.release(kind.hold(manifest))
    kind.with_counts(manifest, {**wanted(kind, manifest), "replicas": 1})
    for phase in ("Pending", "Ready", "Succeeded", "Failed"):
        status = kind.play(manifest, states(pods, phase), now=NOW)
        before = copy.deepcopy(status)
        kind.read({**manifest, "status": status})
        kind.merge(manifest, {"a": status, "b": status})
        assert status == before
    decision.with_pod_labels(kind, manifest, work="w", attempt=1)
    assert manifest == sample.manifest


@every_sample
def test_pod_sets_have_names_of_their_own_and_every_template_is_of_one(sample: Sample) -> None:
    kind = kind_of(sample)
    names = [pod_set.name for pod_set in kind.pod_sets(sample.manifest)]
    assert len(names) == len(set(names))
    assert templated(kind, sample.manifest) <= set(names)


@every_sample
def test_only_divided_kinds_have_replicas(sample: Sample) -> None:
    kind = kind_of(sample)
    is_divided = kind.mode(sample.manifest) == "Divided"
    assert (kind.replicas(sample.manifest) is not None) == is_divided


@every_sample
def test_pods_are_at_least_those_of_the_pod_sets_with_names_and_numbers_of_their_own(
    sample: Sample,
) -> None:
    kind = kind_of(sample)
    pods = kind.pods(sample.manifest)
    counts = Counter(pod.pod_set for pod in pods)
    assert set(counts) == set(wanted(kind, sample.manifest))
    for name, count in wanted(kind, sample.manifest).items():
        assert counts[name] >= count
        numbers = [pod.index for pod in pods if pod.pod_set == name]
        assert numbers == list(range(counts[name]))
    assert len({pod.name for pod in pods}) == len(pods)


@every_sample
def test_a_held_manifest_makes_no_pods_and_comes_back_as_it_was(sample: Sample) -> None:
    kind, manifest = kind_of(sample), sample.manifest
    held = kind.hold(kind.release(manifest))
    if held == manifest:
        assert not kind.is_held(held), "a kind that has no way to be held is never held"
        return
    assert kind.is_held(held)
    assert list(kind.pods(held)) == []
    assert kind.read({**held, "status": kind.play(held, [], now=NOW)}).phase == "Suspended"
    released = kind.release(held)
    assert not kind.is_held(released)
    assert kind.pod_sets(released) == kind.pod_sets(manifest) == kind.pod_sets(held)
    assert kind.replicas(released) == kind.replicas(manifest) == kind.replicas(held)
    assert kind.hold(held) == held


@every_sample
def test_with_counts_is_what_pod_sets_tell(sample: Sample) -> None:
    kind, manifest = kind_of(sample), sample.manifest
    if kind.mode(manifest) == "Divided":
        for count in (0, 1, 7):
            assert kind.replicas(kind.with_counts(manifest, {"replicas": count})) == count
        return
    counts = {pod_set.name: pod_set.count for pod_set in kind.pod_sets(manifest)}
    fewer = {pod_set.name: pod_set.member_size or 1 for pod_set in kind.pod_sets(manifest)}
    for given in (counts, fewer):
        told = kind.pod_sets(kind.with_counts(manifest, given))
        assert {item.name: item.count for item in told} == given


@every_sample
def test_pods_that_wait_read_as_pending(sample: Sample) -> None:
    kind, manifest = kind_of(sample), sample.manifest
    observed = played(kind, manifest, states(first_wave(kind, manifest), "Pending"))
    assert (observed.phase, observed.ready) == ("Pending", 0)


@every_sample
def test_pods_that_are_ready_read_as_running(sample: Sample) -> None:
    kind, manifest = kind_of(sample), sample.manifest
    wave = first_wave(kind, manifest)
    observed = played(kind, manifest, states(wave, "Ready"))
    assert observed.phase == "Running"
    # Some controllers count replicas rather than pods, or leave out those that only submit.
    assert 0 < observed.ready <= len(wave)
    assert observed.is_healthy in (None, True)


@every_sample_that_ends
def test_pods_that_succeeded_read_as_success(sample: Sample) -> None:
    kind, manifest = kind_of(sample), sample.manifest
    observed = played(kind, manifest, states(kind.pods(manifest), "Succeeded", exit_code=0))
    assert (observed.phase, observed.ready) == ("Succeeded", 0)


@every_sample_that_ends
def test_pods_that_failed_for_good_read_as_failure(sample: Sample) -> None:
    kind, manifest = kind_of(sample), sample.manifest
    failed = states(kind.pods(manifest), "Failed", exit_code=1, restarts=100)
    observed = played(kind, manifest, failed)
    assert observed.phase == "Failed"
    assert observed.reason


@every_sample_that_ends
def test_started_as_they_are_due_all_pods_come_to_an_end(sample: Sample) -> None:
    kind, manifest = kind_of(sample), sample.manifest
    over: list[PodState] = []
    for _ in range(len(kind.pods(manifest)) + 1):
        wave = pod_starts.due(kind, manifest, over, now=NOW)
        if not wave:
            break
        counts = Counter(item.pod_set for item in wave)
        assert all(counts[name] <= most for name, most in wanted(kind, manifest).items())
        assert pod_starts.due(kind, manifest, [*over, *states(wave, "Ready")], now=NOW) == ()
        over += states(wave, "Succeeded", exit_code=0)
    assert played(kind, manifest, over).phase == "Succeeded"


@every_sample
def test_one_status_merged_is_that_status(sample: Sample) -> None:
    kind, manifest = kind_of(sample), sample.manifest
    for phase in ("Pending", "Ready", "Succeeded", "Failed"):
        status = kind.play(manifest, states(first_wave(kind, manifest), phase), now=NOW)
        assert kind.merge(manifest, {"cluster": status}) == status
    assert kind.merge(manifest, {}) == {}


@every_sample
def test_two_statuses_merged_read_as_one(sample: Sample) -> None:
    kind, manifest = kind_of(sample), sample.manifest
    wave = first_wave(kind, manifest)
    running_, waiting = (
        kind.play(manifest, states(wave, phase), now=NOW) for phase in ("Ready", "Pending")
    )
    merged = kind.merge(manifest, {"a": running_, "b": waiting})
    assert kind.read({**manifest, "status": merged}).phase in ("Running", "Pending")
    assert kind.merge(manifest, {"b": waiting, "a": running_}) == merged
    if not never_ends(sample):
        ended = kind.play(manifest, states(kind.pods(manifest), "Succeeded"), now=NOW)
        half = kind.merge(manifest, {"a": ended, "b": running_})
        assert kind.read({**manifest, "status": half}).phase != "Succeeded"
        whole = kind.merge(manifest, {"a": ended, "b": ended})
        assert kind.read({**manifest, "status": whole}).phase == "Succeeded"


@every_sample
def test_every_pod_template_is_labelled(sample: Sample) -> None:
    kind = kind_of(sample)
    labelled = decision.with_pod_labels(kind, sample.manifest, work="vision.train", attempt=2)
    own = templated(kind, sample.manifest)
    for pod in (pod for pod in kind.pods(labelled) if pod.pod_set in own):
        assert pod.labels["fairway.dev/work"] == "vision.train"
        assert pod.labels["fairway.dev/attempt"] == "2"
        assert pod.labels["fairway.dev/pod-set"] == pod.pod_set


@every_sample
def test_an_object_that_is_queued_says_so_in_its_own_status(sample: Sample) -> None:
    kind = kind_of(sample)
    said = Announcement(phase="Suspended", reason="Queued", message="it waits", at=NOW)
    status = kind.announce(sample.manifest, said)
    assert kind.announce(sample.manifest, said) == status
    if suspension_path(kind):
        body = {**kind.hold(sample.manifest), "status": status}
        assert is_suspended(body, kind)
        assert kind.read(body).phase == "Suspended"
    else:
        observed = kind.read({**sample.manifest, "status": status})
        assert observed.phase in ("Suspended", "Pending")


@every_sample_that_ends
def test_an_object_that_the_fleet_ended_says_so_in_its_own_status(sample: Sample) -> None:
    kind = kind_of(sample)
    said = Announcement(phase="Failed", reason="Cancelled", message="it was cancelled", at=NOW)
    observed = kind.read({**sample.manifest, "status": kind.announce(sample.manifest, said)})
    assert observed.phase == "Failed"
    assert observed.message == "it was cancelled"
    if kind.name not in ("SparkApplication", "Workflow"):  # these have no place for a reason
        assert observed.reason == "Cancelled"
