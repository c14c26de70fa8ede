"""Creating, showing, changing and deleting objects from the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from cli_outcome import Fairway
from manifests_for_tests import GADGETS, config_map, gadget

from fairway.api.doc import Deprecated
from fairway.client import Client


@pytest.fixture(autouse=True)
def gadgets(fairway: Fairway) -> None:
    fairway("apply", "-f", "-", stdin=GADGETS)


def ageless(text: str) -> str:
    """A table with its ages replaced, since they depend on the moment."""
    return re.sub(r"(?m)\b\d+s$", "0s", text)


def test_apply_says_what_became_of_each_object(fairway: Fairway) -> None:
    made = fairway("apply", "-f", "-", stdin=gadget("a") + "---" + config_map("c"))
    assert (made.code, made.err) == (0, "")
    assert made.out == "gadget.example.test/a created\nconfigmap/c created\n"
    changed = fairway("apply", "-f", "-", stdin=gadget("a", size=2) + "---" + config_map("c"))
    assert changed.out == "gadget.example.test/a configured\nconfigmap/c unchanged\n"


def test_apply_takes_a_folder_whatever_the_order_of_its_files(
    fairway: Fairway, tmp_path: Path, client: Client
) -> None:
    (tmp_path / "1.yaml").write_text(gadget("a").replace("example.test", "later.test"))
    (tmp_path / "2.yaml").write_text(GADGETS.replace("example.test", "later.test"))
    (tmp_path / "notes.txt").write_text("not a manifest")
    below = tmp_path / "below"
    below.mkdir()
    (below / "3.json").write_text(json.dumps(yaml.safe_load(config_map("deep"))))
    shallow = fairway("apply", "-f", str(tmp_path))
    assert shallow.out.splitlines() == [
        "customresourcedefinition.apiextensions.k8s.io/gadgets.later.test created",
        "gadget.later.test/a created",
    ]
    assert "configmap/deep created" in fairway("apply", "-R", "-f", str(tmp_path)).out
    client.delete("crd", "gadgets.later.test")


def test_apply_goes_on_after_a_fault_and_fails_in_the_end(fairway: Fairway) -> None:
    outcome = fairway("apply", "-f", "-", stdin=gadget("a", size=0) + "---" + config_map("c"))
    assert outcome.code == 1
    assert outcome.out == "configmap/c created\n"
    assert outcome.err.startswith('Error from server (Invalid): Gadget.example.test "a" is invalid')
    assert "spec.size" in outcome.err


def test_a_dry_run_creates_nothing(fairway: Fairway) -> None:
    outcome = fairway("apply", "--dry-run=server", "-f", "-", stdin=config_map("c"))
    assert outcome.out == "configmap/c created (server dry run)\n"
    assert fairway("get", "cm", "c").code == 1


def test_a_field_of_another_owner_is_only_taken_by_force(fairway: Fairway) -> None:
    fairway("apply", "-f", "-", "--field-manager=other", stdin=config_map("c"))
    refused = fairway("apply", "-f", "-", stdin=config_map("c", "2"))
    assert refused.code == 1
    assert "(Conflict)" in refused.err
    assert "--force-conflicts" in refused.err
    forced = fairway("apply", "-f", "-", "--force-conflicts", stdin=config_map("c", "2"))
    assert forced.out == "configmap/c configured\n"


def test_get_prints_the_columns_of_kubectl_into_a_pipe(fairway: Fairway) -> None:
    fairway("apply", "-f", "-", stdin=gadget("a") + "---" + gadget("longer", 22, "green"))
    assert fairway("get", "gadgets").out == ("NAME     SIZE   PHASE\na        1\nlonger   22\n")
    assert fairway("get", "gd", "-o", "wide", "--no-headers").out == (
        "a        1           red\nlonger   22          green\n"
    )
    assert fairway("get", "gd", "-l", "colour=green", "-L", "colour").out == (
        "NAME     SIZE   PHASE   COLOUR\nlonger   22             green\n"
    )


def test_get_of_several_kinds_says_which_is_which(fairway: Fairway) -> None:
    fairway("apply", "-f", "-", stdin=gadget("a") + "---" + config_map("c"))
    assert ageless(fairway("get", "gd,cm").out) == (
        "NAME                    SIZE   PHASE\n"
        "gadget.example.test/a   1\n"
        "\n"
        "NAME          DATA   AGE\n"
        "configmap/c   1      0s\n"
    )
    assert fairway("get", "gd/a", "cm/c", "-o", "name").out == (
        "gadget.example.test/a\nconfigmap/c\n"
    )


def test_get_sorts_by_any_field(fairway: Fairway) -> None:
    objects = [gadget("a", 10), gadget("b", 9), gadget("c", 100)]
    fairway("apply", "-f", "-", stdin="---".join(objects))
    ordered = fairway("get", "gd", "--sort-by", ".spec.size", "--no-headers").out
    assert [line.split()[0] for line in ordered.splitlines()] == ["b", "a", "c"]


def test_get_in_every_namespace_shows_the_namespace(fairway: Fairway, namespace: str) -> None:
    fairway("apply", "-f", "-", stdin=gadget("everywhere"))
    shown = fairway("get", "gd", "-A", "--field-selector", "metadata.name=everywhere").out
    assert [line.split() for line in shown.splitlines()] == [
        ["NAMESPACE", "NAME", "SIZE", "PHASE"],
        [namespace, "everywhere", "1"],
    ]


def test_get_gives_one_object_alone_and_several_as_a_list(fairway: Fairway) -> None:
    fairway("apply", "-f", "-", stdin=gadget("a") + "---" + gadget("b"))
    one = yaml.safe_load(fairway("get", "gd", "a", "-o", "yaml").out)
    assert (one["kind"], one["metadata"]["name"]) == ("Gadget", "a")
    assert "managedFields" not in one["metadata"]
    several = json.loads(fairway("get", "gd", "-o", "json").out)
    assert [item["metadata"]["name"] for item in several["items"]] == ["a", "b"]
    path = "jsonpath={range .items[*]}{.metadata.name}={.spec.size}{'\\n'}{end}"
    assert fairway("get", "gd", "-o", path).out == "a=1\nb=1\n\n"


def test_get_of_nothing_says_so_beside_the_output(fairway: Fairway, namespace: str) -> None:
    outcome = fairway("get", "gadgets")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == f"No resources found in {namespace} namespace.\n"


def test_get_shows_what_is_there_and_reports_what_is_not(fairway: Fairway) -> None:
    fairway("apply", "-f", "-", stdin=gadget("a"))
    outcome = fairway("get", "gd", "a", "b", "--no-headers")
    assert (outcome.code, outcome.out.split()) == (1, ["a", "1"])
    assert outcome.err == 'Error from server (NotFound): gadgets.example.test "b" not found\n'
    assert fairway("get", "gd", "b", "--ignore-not-found").code == 0


def test_describe_shows_everything_with_events(
    fairway: Fairway, client: Client, namespace: str
) -> None:
    fairway("apply", "-f", "-", stdin=gadget("a"))
    made = client.get("gd", "a", namespace=namespace)
    client.create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "a.1", "namespace": namespace},
            "involvedObject": {
                "apiVersion": "example.test/v1",
                "kind": "Gadget",
                "name": "a",
                "namespace": namespace,
                "uid": made["metadata"]["uid"],
            },
            "type": "Warning",
            "reason": "TooSmall",
            "message": "It is too small.",
            "lastTimestamp": made["metadata"]["creationTimestamp"],
        }
    )
    condition = {"type": "Ready", "status": "False", "reason": "Small", "message": "Grow it."}
    client.patch(
        "gd",
        "a",
        {"status": {"phase": "Waiting", "conditions": [condition]}},
        namespace=namespace,
        subresource="status",
    )
    shown = fairway("describe", "gadget", "a").out
    assert "Name:        a\n" in shown
    assert "Labels:      colour=red\n" in shown
    assert (
        "Spec:\n  colour: red\n  size: 1\n" in shown or "Spec:\n  size: 1\n  colour: red\n" in shown
    )
    assert "Status:\n  phase: Waiting\n" in shown
    assert re.search(r"Ready +False +Small +<unknown> +Grow it\.", shown)
    assert re.search(r"Warning +TooSmall +It is too small\.", shown)
    listed = fairway("events", "--for", "gadget/a", "--types=Warning").out
    assert re.search(r"Warning +TooSmall +gadget/a +It is too small\.", listed)
    assert fairway("events", "--types=Normal").err.startswith("No events found in")


def test_describe_never_shows_what_a_secret_holds(fairway: Fairway) -> None:
    secret = "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {key: aHVzaA==}}"
    fairway("apply", "-f", "-", stdin=secret)
    shown = fairway("describe", "secret", "s").out
    assert "key: 4 bytes" in shown
    assert "aHVzaA" not in shown


@pytest.mark.parametrize("word", ["label", "annotate"])
def test_marks_are_added_changed_and_removed(fairway: Fairway, word: str) -> None:
    past = "labeled" if word == "label" else "annotated"
    fairway("apply", "-f", "-", stdin=gadget("a"))
    assert fairway(word, "gd", "a", "team=x").out == f"gadget.example.test/a {past}\n"
    assert fairway(word, "gd/a", "team=x").out == f"gadget.example.test/a not {past}\n"
    refused = fairway(word, "gd", "a", "team=y")
    assert (refused.code, "already has team=x" in refused.err) == (1, True)
    assert fairway(word, "gd", "a", "team=y", "--overwrite").code == 0
    assert fairway(word, "gd", "--all", "team-").code == 0
    assert "team" not in fairway("get", "gd", "a", "-o", "yaml").out


def test_patch_and_scale_change_single_fields(fairway: Fairway) -> None:
    fairway("apply", "-f", "-", stdin=gadget("a"))
    assert fairway("patch", "gd", "a", "-p", '{"spec":{"size":3}}').out == (
        "gadget.example.test/a patched\n"
    )
    steps = '[{"op":"test","path":"/spec/size","value":3},{"op":"remove","path":"/spec/colour"}]'
    assert fairway("patch", "gd/a", "--type=json", "-p", steps).code == 0
    assert fairway("scale", "gd", "a", "--replicas=5").out == "gadget.example.test/a scaled\n"
    assert fairway("scale", "gd", "a", "--replicas=6", "--current-replicas=4").code == 1
    spec = fairway("get", "gd", "a", "-o", "jsonpath={.spec}").out
    assert json.loads(spec) == {"size": 5}


def test_delete_waits_until_the_object_is_gone(fairway: Fairway, namespace: str) -> None:
    fairway("apply", "-f", "-", stdin=gadget("a") + "---" + gadget("b") + "---" + gadget("c"))
    said = fairway("delete", "gd", "a")
    assert said.out == f'gadget.example.test "a" deleted from {namespace} namespace\n'
    again = fairway("delete", "gd", "a")
    assert (again.code, "NotFound" in again.err) == (1, True)
    assert fairway("delete", "gd", "a", "--ignore-not-found").code == 0
    assert fairway("delete", "gd").code == 1
    assert fairway("delete", "-f", "-", "-o", "name", stdin=gadget("b")).out == (
        "gadget.example.test/b\n"
    )
    assert fairway("delete", "gd", "-l", "colour=red").out.count("deleted") == 1


def test_flags_take_a_value_as_with_kubectl(fairway: Fairway) -> None:
    held = gadget("held").replace("  labels:", "  finalizers: [example.test/hold]\n  labels:")
    fairway("apply", "-f", "-", stdin=held)
    assert fairway("delete", "gd", "held", "--wait=false", "--ignore-not-found=true").code == 0
    assert fairway("get", "gd", "held", "--no-headers=false").out.startswith("NAME")
    fairway("patch", "gd", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert fairway("get", "gd", "held").code == 1


def test_delete_gives_up_waiting_when_told(
    fairway: Fairway, client: Client, namespace: str
) -> None:
    held = gadget("held").replace("  labels:", "  finalizers: [example.test/hold]\n  labels:")
    fairway("apply", "-f", "-", stdin=held)
    outcome = fairway("delete", "gd", "held", "--timeout=50ms")
    assert (outcome.code, "timed out" in outcome.err) == (1, True)
    client.patch("gd", "held", {"metadata": {"finalizers": None}}, namespace=namespace)


def test_export_can_be_applied_again(fairway: Fairway, namespace: str) -> None:
    fairway("apply", "-f", "-", stdin=gadget("a") + "---" + config_map("c"))
    text = fairway("export").out
    objects = list(yaml.safe_load_all(text))
    assert {obj["kind"] for obj in objects} == {"Gadget", "ConfigMap"}
    assert all(set(obj["metadata"]) <= {"name", "namespace", "labels"} for obj in objects)
    assert fairway("export", "gadgets").out.count("kind:") == 1
    fairway("delete", "-f", "-", stdin=text)
    made = fairway("apply", "-f", "-", stdin=text)
    assert sorted(made.out.splitlines()) == ["configmap/c created", "gadget.example.test/a created"]


def test_export_of_secrets_warns(fairway: Fairway) -> None:
    secret = "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {key: aHVzaA==}}"
    fairway("apply", "-f", "-", stdin=secret)
    outcome = fairway("export")
    assert "aHVzaA==" in outcome.out
    assert "1 of these 1 objects are Secrets" in outcome.err


def test_explain_tells_what_can_be_written(fairway: Fairway) -> None:
    assert fairway("explain", "gadget.spec").out == (
        "GROUP:      example.test\n"
        "KIND:       Gadget\n"
        "VERSION:    v1\n"
        "\n"
        "FIELD:      spec <Object>\n"
        "\n"
        "DESCRIPTION:\n"
        "    What is wanted.\n"
        "\n"
        "FIELDS:\n"
        "  colour\t<string>\n"
        "    How it looks.\n"
        "    One of: red, green.\n"
        "\n"
        "  size\t<integer> -required-\n"
        "    How large it is to be.\n"
        "    At least 1.\n"
        "\n"
    )
    wrong = fairway("explain", "gd.spec.sise")
    assert wrong.err == 'error: field "sise" does not exist in gd.spec (did you mean "size"?)\n'
    assert "    size\t<integer>" in fairway("explain", "gadgets.example.test", "--recursive").out
    assert "map[string]string" in fairway("explain", "deployment.spec.template.metadata.labels").out


def test_a_deprecated_field_is_warned_of_once_and_a_new_value_refused(fairway: Fairway) -> None:
    kind = yaml.safe_load(GADGETS.replace("example.test", "leaving.test"))
    assert fairway("apply", "-f", "-", stdin=yaml.safe_dump(kind)).code == 0
    made = "".join(gadget(name).replace("example.test", "leaving.test") + "---" for name in "ab")
    assert (fairway("apply", "-f", "-", stdin=made).code) == 0
    schema = kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    deprecated = Deprecated(since="0.2.0", use="spec.paint")
    schema["properties"]["colour"]["x-kubernetes-validations"] = [deprecated.as_json()]
    assert fairway("apply", "-f", "-", stdin=yaml.safe_dump(kind)).code == 0
    said = "spec.colour: deprecated since 0.2.0; use spec.paint instead"
    changed = fairway("apply", "-f", "-", stdin=made.replace("size: 1", "size: 2"))
    assert (changed.code, changed.err) == (0, f"Warning: {said}\n")
    refused = fairway("apply", "-f", "-", stdin=made.replace("red", "green"))
    assert refused.code == 1
    assert "spec.colour: Invalid value" in refused.err
    assert "deprecated since 0.2.0; use spec.paint instead" in refused.err
    fairway("delete", "crd", "gadgets.leaving.test")
