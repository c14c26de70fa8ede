"""Which kind a person means."""

from __future__ import annotations

import pytest

from fairway.client import UnknownKind
from fairway.client.catalogue import Catalogue, Served, from_resource_list

CATALOGUE = Catalogue(
    [
        Served(group="", version="v1", plural="pods", kind="Pod", categories=("all",)),
        Served(group="", version="v1", plural="events", kind="Event", short_names=("ev",)),
        Served(group="apps", version="v1", plural="deployments", kind="Deployment"),
        Served(group="batch", version="v1", plural="jobs", kind="Job", categories=("all",)),
        Served(group="batch", version="v1beta1", plural="jobs", kind="Job", categories=("all",)),
        Served(group="events.k8s.io", version="v1", plural="events", kind="Event"),
        Served(
            group="fairway.dev",
            version="v1alpha1",
            plural="workloads",
            singular="workload",
            kind="Workload",
            short_names=("wl",),
            categories=("fairway",),
        ),
    ]
)


@pytest.mark.parametrize(
    ("word", "group", "version"),
    [
        pytest.param("workloads", "fairway.dev", "v1alpha1", id="the plural"),
        pytest.param("workload", "fairway.dev", "v1alpha1", id="the singular"),
        pytest.param("wl", "fairway.dev", "v1alpha1", id="the short name"),
        pytest.param("Workload", "fairway.dev", "v1alpha1", id="the kind"),
        pytest.param("deployments.apps", "apps", "v1", id="with its group"),
        pytest.param("jobs.v1beta1.batch", "batch", "v1beta1", id="with version and group"),
        pytest.param("jobs", "batch", "v1", id="the preferred version without one"),
        pytest.param("events", "", "v1", id="the first group without one"),
        pytest.param("events.events.k8s.io", "events.k8s.io", "v1", id="a group with dots"),
        pytest.param("events.v1", "", "v1", id="the version of the core group"),
    ],
)
def test_a_word_means(word: str, group: str, version: str) -> None:
    found = CATALOGUE.resolve(word)
    assert (found.group, found.version) == (group, version)


def test_an_unknown_word_brings_the_nearest_known_one() -> None:
    with pytest.raises(UnknownKind, match=r'"workloda" \(did you mean "workload"\?\)'):
        CATALOGUE.resolve("workloda")


def test_a_category_means_each_of_its_kinds_once() -> None:
    assert [item.qualified for item in CATALOGUE.expand("all")] == ["pods", "jobs.batch"]


def test_an_object_finds_its_kind_or_the_nearest() -> None:
    assert CATALOGUE.of("batch/v1beta1", "Job").version == "v1beta1"
    with pytest.raises(UnknownKind, match='did you mean "Workload"'):
        CATALOGUE.of("fairway.dev/v1alpha1", "Worklod")


def test_paths_name_collection_object_and_part() -> None:
    deployment = CATALOGUE.resolve("deployments")
    assert deployment.path(namespace="a") == "/apis/apps/v1/namespaces/a/deployments"
    assert deployment.path() == "/apis/apps/v1/deployments"
    scale = deployment.path("web", namespace="a", subresource="scale")
    assert scale == "/apis/apps/v1/namespaces/a/deployments/web/scale"
    assert CATALOGUE.resolve("pods").path("p", namespace="a") == "/api/v1/namespaces/a/pods/p"


def test_older_discovery_is_understood() -> None:
    resources = [
        {
            "name": "webs",
            "kind": "Web",
            "namespaced": True,
            "verbs": ["get"],
            "singularName": "web",
        },
        {"name": "webs/scale", "kind": "Scale", "namespaced": True, "verbs": ["get"]},
    ]
    (found,) = from_resource_list("g", "v1", {"resources": resources})
    assert (found.plural, found.subresources) == ("webs", ("scale",))
