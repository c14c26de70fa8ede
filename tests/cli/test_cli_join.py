"""Inviting and accepting clusters, on a hub in this process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml
from cli_outcome import Fairway

from fairway.agent.join import agent_side, sealed_box
from fairway.agent.join.hub_side import Request
from fairway.agent.join.invitations import Invitation, read
from fairway.client import Client
from fairway.clock import SystemClock
from fairway.kubeapi import KubeApi


def asks(invitation: Invitation, key: bytes) -> Request:
    request = Request(public_key=sealed_box.public_of(key), host="edge-host", version="0.1")

    async def ask() -> None:
        hub = KubeApi(invitation.access(), SystemClock())
        await agent_side.ask(hub, invitation.cluster, request)
        await hub.close()

    asyncio.run(ask())
    return request


def invitation_in(out: str) -> Invitation:
    command, agent, option, text = out.split()
    assert (command, agent, option) == ("fairway", "agent", "--join")
    return read(text)


def test_a_cluster_is_invited_asks_and_is_accepted_by_its_key(
    fairway: Fairway, client: Client
) -> None:
    invited = fairway("join", "--name", "edge-7", "--pull", "--hub-url", "https://hub.example:7878")
    assert invited.code == 0
    assert "fairway accept edge-7" in invited.err
    far = invitation_in(invited.out)
    assert (far.server, far.cluster) == ("https://hub.example:7878", "edge-7")
    early = fairway("accept", "edge-7")
    assert (early.code, early.out) == (1, "")
    assert "no agent has asked to join as edge-7 yet" in early.err

    request = asks(
        invitation_in(fairway("join", "--name", "edge-7", "--pull").out), sealed_box.new_key()
    )
    wrong = fairway("accept", "edge-7", "--fingerprint", "0000-0000-0000-0000")
    assert wrong.code == 1
    assert "nothing was accepted" in wrong.err
    unsure = fairway("accept", "edge-7", stdin="n\n")
    assert unsure.code == 130
    assert f"edge-host asks to join as edge-7 with the key {request.fingerprint}" in unsure.err
    assert client.get("clusters", "edge-7")["spec"]["accepted"] is False

    done = fairway("accept", "edge-7", "--fingerprint", request.fingerprint, "--mode", "Shadow")
    assert done.out == "cluster.fairway.dev/edge-7 accepted\n"
    spec = client.get("clusters", "edge-7")["spec"]
    assert (spec["accepted"], spec["mode"]) == (True, "Shadow")
    again = fairway("join", "--name", "edge-7", "--pull")
    assert again.code == 1
    assert "edge-7 has an agent" in again.err


def test_deleting_a_cluster_takes_its_agents_rights(fairway: Fairway, client: Client) -> None:
    invitation = invitation_in(fairway("join", "--name", "brief", "--pull").out)
    asks(invitation, sealed_box.new_key())
    assert fairway("accept", "brief", "--yes").code == 0
    role = client.get("clusterroles", "fairway:cluster:brief")
    assert [owner["kind"] for owner in role["metadata"]["ownerReferences"]] == ["Cluster"]
    assert fairway("delete", "cluster", "brief").code == 0
    waited = fairway("wait", "clusterrole/fairway:cluster:brief", "--for=delete", "--timeout=120s")
    assert waited.code == 0


def test_rights_in_a_cluster_are_printed_without_one(fairway: Fairway) -> None:
    looking = list(yaml.safe_load_all(fairway("join", "--print-rbac").out))
    acting = list(yaml.safe_load_all(fairway("join", "--print-rbac", "--mode", "Manage").out))
    everywhere = [item for item in looking if item["kind"] == "ClusterRole"]
    verbs = {verb for item in everywhere for rule in item["rules"] for verb in rule["verbs"]}
    assert verbs == {"get", "list", "watch"}
    assert [item["kind"] for item in looking] == [
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
    ]
    assert [item["metadata"]["name"] for item in acting][-1] == "fairway-tenant"


def test_a_hub_renews_its_own_token_and_an_agent_inside_needs_not(fairway: Fairway) -> None:
    by_push = list(yaml.safe_load_all(fairway("join", "--print-rbac").out))
    by_pull = list(yaml.safe_load_all(fairway("join", "--print-rbac", "--pull").out))
    assert by_pull == [
        item for item in by_push if item["metadata"]["name"] != "fairway-agent-token"
    ]
    (role,) = [item for item in by_push if item["kind"] == "Role"]
    assert role["metadata"]["namespace"] == "fairway-system"
    assert role["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["serviceaccounts/token"],
            "verbs": ["create"],
            "resourceNames": ["fairway-agent"],
        }
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--pull",), "--name says what the cluster is called"),
        (("--name", "a"), "--context or --kubeconfig names the cluster that joins"),
        (("--name", "a", "--pull", "--context", "b"), "--hub-kubeconfig"),
        (("--name", "a", "--pull", "--hub-url", "http://b"), "--hub-url begins with https://"),
        (("--name", "a", "--pull", "--dry-run"), "--dry-run is for joining by push"),
        (("--name", "a", "--context", "nowhere"), 'there is no context "nowhere"'),
    ],
    ids=[
        "no name",
        "no cluster",
        "a cluster that is not touched",
        "a hub without TLS",
        "a dry run that would be none",
        "an unknown context",
    ],
)
def test_what_cannot_join_is_told_why(fairway: Fairway, words: tuple[str, ...], told: str) -> None:
    outcome = fairway("join", *words)
    assert outcome.code == 1
    assert told in outcome.err


def test_an_agent_without_an_invitation_or_with_a_wrong_one_says_so(
    fairway: Fairway, tmp_path: Path
) -> None:
    folder = ("--data", str(tmp_path / "agent"))
    assert "has not joined yet" in fairway("agent", *folder).err
    assert "this is no invitation" in fairway("agent", *folder, "--join", "abc").err
    assert "cannot use" in fairway("agent", *folder, "--join", f"@{tmp_path}/none").err


def roles_in(out: str) -> dict[str, list[dict[str, list[str]]]]:
    printed = [
        document for document in yaml.safe_load_all(out) if document["kind"] == "ClusterRole"
    ]
    return {item["metadata"]["name"]: item["rules"] for item in printed}


@pytest.mark.parametrize(
    ("words", "granted"),
    [
        pytest.param((), set(), id="nothing unless it is asked for"),
        pytest.param(("--allow", "exec"), {"pods/exec"}, id="commands"),
        pytest.param(
            ("--allow", "exec, port-forward"), {"pods/exec", "pods/portforward"}, id="both"
        ),
    ],
)
def test_what_users_may_do_inside_pods_is_what_the_owners_allow(
    words: tuple[str, ...], granted: set[str], fairway: Fairway
) -> None:
    printed = roles_in(fairway("join", "--print-rbac", "--mode", "Manage", *words).out)
    inside = {
        resource
        for rule in printed["fairway-tenant"]
        for resource in rule["resources"]
        if resource.startswith("pods/")
    }
    assert inside == {"pods/log", *granted}
    # The agent's own account never has them: it acts as the tenant's.
    listed = {resource for rule in printed["fairway-agent"] for resource in rule["resources"]}
    assert not {item for item in listed if item.startswith("pods/")}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("--mode", "Manage", "--allow", "root"), "not root", id="an unknown word"),
        pytest.param(("--allow", "exec"), "--mode Manage", id="where nothing runs"),
        pytest.param(
            ("--name", "a", "--pull", "--stream-url", "http://hub"), "https://", id="no HTTPS"
        ),
    ],
)
def test_what_cannot_be_allowed_is_said(
    words: tuple[str, ...], said: str, fairway: Fairway
) -> None:
    outcome = fairway("join", *(() if "--pull" in words else ("--print-rbac",)), *words)
    assert outcome.code == 1
    assert said in outcome.err


def test_an_agent_that_joined_before_gets_the_rights_of_today_by_being_accepted_again(
    fairway: Fairway, client: Client
) -> None:
    invited = fairway("join", "--name", "edge-9", "--pull")
    asks(invitation_in(invited.out), sealed_box.new_key())
    assert fairway("accept", "edge-9", "--yes").code == 0
    client.delete("secrets", "fairway-join", namespace="fairway-cluster-edge-9")
    name = "fairway:cluster:edge-9"
    rules = client.get("clusterroles", name)["rules"]
    older = [rule for rule in rules if "clusters/stream" not in rule["resources"]]
    assert len(older) == len(rules) - 1
    client.patch("clusterroles", name, {"rules": older})
    assert fairway("accept", "edge-9").code == 0
    assert client.get("clusterroles", name)["rules"] == rules
