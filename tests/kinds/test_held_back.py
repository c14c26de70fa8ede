"""How each kind is held back from the hub's own controllers: the table, and what is made of it."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from fairway.kinds.held_back import GATED, advice, groups, is_held_back, means_of
from fairway.kinds.native import as_workload, clean_manifest
from fairway.kinds.plain import with_value
from fairway.kinds.registry import built_in
from fairway.store.kubernetes.held_back import is_mutating, pairs
from tests.kinds.recorded import Sample, samples

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "native-objects.md"


def held_back(sample: Sample) -> dict:
    """A sample as the server lets it in."""
    kind = built_in().of(sample.manifest)
    assert kind is not None
    means = means_of(kind)
    value = [{"name": means.value}] if means is GATED else means.value
    return with_value(sample.manifest, means.path, value)


def possible() -> list[Sample]:
    kinds = built_in()
    return [
        sample
        for sample in samples()
        if (kind := kinds.of(sample.manifest)) is not None and means_of(kind).is_possible
    ]


def test_the_table_in_the_guide_is_what_the_code_says() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "held_back.py"))
    text = PAGE.read_text()
    assert text == tool["page"](text), "run: make generate"
    assert tool["table"]() in text


def test_every_kind_is_in_one_line_of_the_table() -> None:
    listed = [kind for group in groups(built_in()) for kind in group.kinds]
    assert sorted(listed) == list(built_in().names())


@pytest.mark.parametrize("sample", possible(), ids=lambda item: item.name)
def test_what_the_server_wrote_holds_and_does_not_travel(sample: Sample) -> None:
    kind = built_in().of(sample.manifest)
    assert kind is not None
    held = held_back(sample)
    assert is_held_back(held, kind)
    # In a cluster it runs as it would have without.
    assert not is_held_back(kind.release(clean_manifest(held)), kind)


@pytest.mark.parametrize("sample", samples(), ids=lambda other: other.name)
def test_an_object_as_people_write_it_is_not_held_back(sample: Sample) -> None:
    kind = built_in().of(sample.manifest)
    assert kind is not None
    assert not is_held_back(sample.manifest, kind)
    assert "spec.template.manifests" in advice(kind)


def test_what_an_agent_made_is_no_native_object() -> None:
    job = next(sample.manifest for sample in samples() if sample.name.startswith("job-"))
    queued = with_value(job, ("metadata", "labels"), {"fairway.dev/queue": "research"})
    assert as_workload(queued, built_in()) is not None
    labels = {"fairway.dev/queue": "research", "fairway.dev/work": "one"}
    assert as_workload(with_value(job, ("metadata", "labels"), labels), built_in()) is None


def test_every_policy_fails_closed_and_is_bound() -> None:
    made = pairs("hub")
    assert [is_mutating(policy) for policy, _ in made] == [True, False, True, False]
    for policy, binding in made:
        assert policy["spec"]["failurePolicy"] == "Fail"
        assert binding["spec"]["policyName"] == policy["metadata"]["name"]
        assert binding["kind"] == f"{policy['kind']}Binding"
        assert is_mutating(policy) or binding["spec"]["validationActions"] == ["Deny"]
