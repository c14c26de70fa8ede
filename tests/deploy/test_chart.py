"""The Helm chart is the same objects: made from the same source, and rendered alike."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairway.deploy import chart, manifests
from fairway.deploy.settings import Settings
from tests.kubernetes import binaries
from tests.kubernetes.demand import demand

CHART = Path(__file__).parents[2] / "deploy" / "chart"
Json = dict[str, Any]


def key(one: Json) -> tuple[str, str, str]:
    return one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]


def test_the_committed_chart_is_what_the_source_says() -> None:
    for name, text in chart.files().items():
        assert (CHART / name).read_text() == text, "run: make generate"
    found = {str(path.relative_to(CHART)) for path in CHART.rglob("*") if path.is_file()}
    assert {item for item in found if not item.startswith("crds/")} == set(chart.files())
    assert (CHART / "crds").resolve() == CHART.parent / "crds"


def test_every_value_is_a_setting_with_its_default() -> None:
    values = yaml.safe_load(chart.files()["values.yaml"])
    defaults = Settings()
    for name, value in values.items():
        plain = "".join(f"_{item.lower()}" if item.isupper() else item for item in name)
        assert getattr(defaults, plain) == value


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        pytest.param(Settings(), {}, id="as it comes"),
        pytest.param(
            Settings(
                namespace="hubs", image="registry.example.com/f@sha256:0123", replicas=5, cpu="2"
            ),
            {"image": "registry.example.com/f@sha256:0123", "replicas": 5, "cpu": "2"},
            id="elsewhere, with another image, and a processor that looks like a number",
        ),
        pytest.param(
            Settings(monitoring=True, all_secrets=True, memory="4Gi"),
            {"monitoring": True, "allSecrets": True, "memory": "4Gi"},
            id="with all that can be asked for",
        ),
        pytest.param(
            Settings(options=["--oidc-client-id=fairway", "--page-read-only"]),
            {"options": ["--oidc-client-id=fairway", "--page-read-only"]},
            id="with further options of the hub",
        ),
        pytest.param(
            Settings(
                network_policy=False,
                admission_policy=False,
                admission_webhook=False,
                namespace="123",
            ),
            {"networkPolicy": False, "admissionPolicy": False, "admissionWebhook": False},
            id="without what can be left out, in a namespace that looks like a number",
        ),
    ],
)
@pytest.mark.real
def test_helm_renders_what_install_prints(
    settings: Settings, values: Json, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    helm = demand(binaries.helm, request.config)
    (tmp_path / "values.yaml").write_text(json.dumps(values))
    done = subprocess.run(
        [str(helm), "template", "fairway", str(CHART), f"--namespace={settings.namespace}",
         f"--values={tmp_path / 'values.yaml'}", "--include-crds", "--kube-version=1.36.0"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rendered = {key(document): document for document in yaml.safe_load_all(done.stdout) if document}
    printed = {key(object_): object_ for object_ in manifests.objects(settings)}
    # Helm makes the namespace of a release itself, when told to.
    del printed["Namespace", "", settings.namespace]
    assert rendered.keys() == printed.keys()
    for name, value in printed.items():
        assert rendered[name] == value


@pytest.mark.real
def test_helm_finds_nothing_to_blame(request: pytest.FixtureRequest) -> None:
    helm = demand(binaries.helm, request.config)
    done = subprocess.run(
        [str(helm), "lint", "--strict", str(CHART), "--kube-version=1.36.0"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
