"""What `fairway install` prints: whole, confined, and no more rights than are said."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairway.api.kinds import KINDS
from fairway.cli.main import run
from fairway.deploy import manifests, member
from fairway.deploy.settings import Settings, faults
from fairway.server.access.tokens import Authenticator

ROOT = Path(__file__).parents[2]
Json = dict[str, Any]


def named(found: list[Json]) -> dict[tuple[str, str], Json]:
    return {(item["kind"], item["metadata"]["name"]): item for item in found}


def rules(found: list[Json]) -> list[Json]:
    roles = ("Role", "ClusterRole")
    return [rule for item in found if item["kind"] in roles for rule in item["rules"]]


def test_what_is_printed_is_what_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--namespace=hubs", "--image=registry.example.com/fairway:9", "--replicas=3"]
    words += ["--option=--oidc-client-id=fairway", "--option=--page-read-only"]
    assert run(["install", *words, "--monitoring"]) == 0
    settings = Settings(
        namespace="hubs",
        image="registry.example.com/fairway:9",
        replicas=3,
        monitoring=True,
        options=["--oidc-client-id=fairway", "--page-read-only"],
    )
    assert list(yaml.safe_load_all(capsys.readouterr().out)) == manifests.objects(settings)


def test_no_object_is_there_twice() -> None:
    settings = Settings(namespace="hubs", monitoring=True, all_secrets=True)
    found = manifests.objects(settings)
    keys = {
        (item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"])
        for item in found
    }
    assert len(keys) == len(found)


def test_all_our_kinds_come_first() -> None:
    found = manifests.objects(Settings())
    assert [item["metadata"]["name"] for item in found[: len(KINDS)]] == [
        kind.qualified for kind in KINDS
    ]


@pytest.mark.parametrize(
    ("setting", "kinds"),
    [
        pytest.param({"monitoring": True}, {"ServiceMonitor", "PrometheusRule"}, id="monitoring"),
        pytest.param({"network_policy": True}, {"NetworkPolicy"}, id="the network policy"),
        pytest.param(
            {"admission_policy": True}, {"MutatingAdmissionPolicy"}, id="the admission policy"
        ),
        pytest.param(
            {"admission_webhook": True},
            {"ValidatingWebhookConfiguration"},
            id="the admission webhook",
        ),
    ],
)
def test_what_may_be_left_out_is(setting: dict[str, bool], kinds: set[str]) -> None:
    def there(settings: Settings) -> set[str]:
        return {object_["kind"] for object_ in manifests.objects(settings)}

    without = {key: not value for key, value in setting.items()}
    assert kinds <= there(Settings(**setting))
    assert not kinds & there(Settings(**without))


def test_a_hub_elsewhere_still_has_the_namespace_of_its_term() -> None:
    found = named(manifests.objects(Settings(namespace="hubs")))
    assert ("Namespace", "hubs") in found
    assert ("Namespace", "fairway-system") in found
    assert found["Role", "fairway-hub-term"]["metadata"]["namespace"] == "fairway-system"
    assert found["RoleBinding", "fairway-hub-term"]["subjects"][0]["namespace"] == "hubs"


def test_no_role_has_a_wildcard() -> None:
    for rule in rules(manifests.objects(Settings(all_secrets=True))):
        assert "*" not in [*rule["verbs"], *rule.get("apiGroups", ()), *rule.get("resources", ())]


def test_no_role_can_give_itself_more() -> None:
    for rule in rules(manifests.objects(Settings(all_secrets=True))):
        assert not {"impersonate", "bind", "escalate"} & set(rule["verbs"])
        if set(rule["apiGroups"]) & {
            "rbac.authorization.k8s.io",
            "admissionregistration.k8s.io",
            "apiextensions.k8s.io",
        }:
            # These name the hub's address; a policy confines what the second asks about.
            names = rule.get("resourceNames")
            is_own = names in (["flavors.fairway.dev"], ["checks.fairway.dev"])
            assert set(rule["verbs"]) <= {"get", "list", "watch", *(["patch"] if is_own else [])}


def test_without_the_webhook_no_right_on_it_is_left() -> None:
    there = manifests.objects(Settings(admission_webhook=False))
    assert not [rule for rule in rules(there) if "patch" in rule["verbs"]
                and "admissionregistration.k8s.io" in rule["apiGroups"]]  # fmt: skip
    assert not [name for _, name in named(there) if name == "fairway-hub-webhook"]


def test_secrets_are_read_by_name_and_only_at_home_unless_asked() -> None:
    for rule in rules(manifests.objects(Settings(all_secrets=True))):
        if "secrets" in rule["resources"]:
            names = rule.get("resourceNames")
            is_kept_up = names in (["fairway-authority"], ["fairway-kubeconfig"])
            assert rule["verbs"] == (["get", "update"] if is_kept_up else ["get"])
    assert ("ClusterRoleBinding", "fairway-hub-secrets") not in named(manifests.objects(Settings()))
    wider = named(manifests.objects(Settings(all_secrets=True)))
    assert ("ClusterRoleBinding", "fairway-hub-secrets") in wider


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        pytest.param(Settings(namespace="Not-One"), "--namespace:", id="a namespace in capitals"),
        pytest.param(Settings(image="a b"), "--image:", id="an image with a space"),
        pytest.param(Settings(image=""), "--image:", id="no image"),
        pytest.param(Settings(replicas=0), "--replicas:", id="no replica"),
        pytest.param(Settings(replicas=100), "--replicas:", id="too many replicas"),
        pytest.param(Settings(cpu="much"), "--cpu:", id="a processor that is no quantity"),
        pytest.param(Settings(memory="-1Gi"), "--memory:", id="less than no memory"),
        pytest.param(Settings(options=["oidc"]), "--option:", id="an option that is none"),
    ],
)
def test_settings_that_cannot_be_are_told_by_option(settings: Settings, told: str) -> None:
    assert [fault.startswith(told) for fault in faults(settings)] == [True]


def test_a_fault_ends_the_command_and_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["install", "--replicas=0"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "--replicas: 0 is not between 1 and 9" in shown.err


def test_a_member_that_is_only_observed_lets_nobody_act(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["install", "--member", "--observe"]) == 0
    found = list(yaml.safe_load_all(capsys.readouterr().out))
    assert found == member.objects("fairway-system", may_act=False)
    assert all(set(rule["verbs"]) == {"get", "list", "watch"} for rule in rules(found))
    acting = rules(member.objects("fairway-system", may_act=True))
    assert any("impersonate" in item["verbs"] for item in acting)


@pytest.mark.parametrize("name", ["view", "edit"])
def test_people_get_our_kinds_with_the_roles_they_have(name: str) -> None:
    role = named(manifests.objects(Settings()))["ClusterRole", f"fairway-{name}"]
    label = f"rbac.authorization.k8s.io/aggregate-to-{name}"
    assert role["metadata"]["labels"] == {label: "true"}
    assert any("workloads" in rule["resources"] for rule in role["rules"])
    assert {group for rule in role["rules"] for group in rule["apiGroups"]} <= {
        "fairway.dev",
        "kinds.fairway.dev",
        "serving.fairway.dev",
        "costs.fairway.dev",
        "scores.fairway.dev",
        "governance.fairway.dev",
    }


def test_what_the_guide_says_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    guide = (ROOT / "docs" / "guides" / "install.md").read_text()
    lines = [line.partition("|")[0].split() for line in guide.splitlines() if line[:7] == "fairway"]
    assert len(lines) >= 2
    for words in lines:
        assert run(words[1:]) == 0, words
        assert list(yaml.safe_load_all(capsys.readouterr().out))
    options = {part for part in guide.split("`") if part.startswith("--no-")}
    for option in options - {"--no-crds | kubectl delete -f -"}:
        assert run(["install", option]) == 0, option
        capsys.readouterr()


@pytest.mark.parametrize("has_tokens", [True, False], ids=["with tokens", "without"])
def test_a_pod_prepares_a_folder_that_a_hub_takes(tmp_path: Path, has_tokens: bool) -> None:
    deployment = named(manifests.objects(Settings()))["Deployment", "fairway-hub"]
    (prepare,) = deployment["spec"]["template"]["spec"]["initContainers"]
    shell, option, script = prepare["command"]
    for mount in prepare["volumeMounts"]:
        folder = tmp_path / mount["name"]
        folder.mkdir()
        script = script.replace(mount["mountPath"], str(folder))
    row = 'secret,ada,ada,"system:masters"\n'
    if has_tokens:
        (tmp_path / "tokens" / "tokens.csv").write_text(row)
        (tmp_path / "tokens" / "tokens.csv").chmod(0o440)
    subprocess.run([shell, option, script], check=True, timeout=20)
    hub = tmp_path / "data" / "hub"
    assert stat.S_IMODE(hub.stat().st_mode) == 0o700
    token = Authenticator(hub).admin_token()  # it refuses what others may read
    assert (token == "secret") is has_tokens
