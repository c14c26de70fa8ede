"""What `fairway install` prints, on a real kube-apiserver: taken as it is, and rights that suffice.

The hub of these tests has the token of the account that was installed, and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairway.api import crds
from fairway.api.submission import CREATED_BY
from fairway.controllers.cache import WORKLOADS
from fairway.store.interface import WatchFrom
from fairway.store.keys import EVENTS
from fairway.store.kubernetes import checked_writes
from tests.endtoend.hubs import ROOT, HubProcess
from tests.kubernetes import binaries, control_plane
from tests.kubernetes.control_plane import ControlPlane, kubeconfig_text
from tests.kubernetes.demand import demand
from tests.kubernetes.test_hub import (
    AS_THEY_ARE,
    FLEET,
    JOB,
    PATIENCE_SECONDS,
    QUEUE,
    has_succeeded,
    store_of,
    until_all,
)
from tests.waiting import seen_at_last

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("install")]

HOME = "fairway-system"
TOKENS = """\
token-of-ada,ada,ada,"system:masters"
token-of-prometheus,prometheus,prometheus,"system:monitoring"
token-of-eve,eve,eve,"nobody"
"""


@dataclass(frozen=True, kw_only=True)
class Installed:
    """A server on which everything was applied, and two ways to it."""

    plane: ControlPlane
    program: Path
    account: Path  # the kubeconfig of the hub's account

    def kubectl(self, *words: str, given: str = "", as_hub: bool = False) -> Any:
        config = self.account if as_hub else self.plane.kubeconfig
        return subprocess.run(
            [str(self.program), f"--kubeconfig={config}", *words],
            input=given, capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip

    def done(self, *words: str, given: str = "") -> str:
        done = self.kubectl(*words, given=given)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)


@cache
def printed(*words: str) -> str:
    command = [sys.executable, "-m", "fairway.cli.main", "install", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=120, check=True
    )
    return done.stdout


@pytest.fixture(scope="module")
def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    for name in binaries.SERVER_PROGRAMS:
        demand(lambda say, name=name: binaries.program(name, say), request.config)
    program = demand(binaries.newest_kubectl, request.config).path
    folder = tmp_path_factory.mktemp("installed")
    with control_plane.running(folder, has_accounts=True) as plane:
        found = Installed(plane=plane, program=program, account=folder / "account.kubeconfig")
        found.done("apply", "--server-side", "-f", "-", given=printed("--replicas=1"))
        token = found.done("create", "token", "fairway-hub", f"--namespace={HOME}").strip()
        found.account.write_text(kubeconfig_text(plane.url, token, folder / "serving.crt"))
        yield found


def test_everything_is_taken_and_the_kinds_are_served(installed: Installed) -> None:
    names = [f"crd/{definition['metadata']['name']}" for definition in crds.definitions()]
    installed.done("wait", "--for=condition=Established", "--timeout=120s", *names)
    for way in ("--server-side=true", "--server-side=false"):
        again = installed.done("apply", way, "-f", "-", given=printed("--replicas=1"))
        assert len(again.splitlines()) == len(list(yaml.safe_load_all(printed())))


def test_its_pods_meet_the_strictest_standard(installed: Installed) -> None:
    found = json.loads(
        installed.done("get", "deployment", "fairway-hub", f"--namespace={HOME}", "-o", "json")
    )
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "trial", "namespace": HOME},
        "spec": found["spec"]["template"]["spec"],
    }
    words = ("create", "--dry-run=server", "-f", "-")
    installed.done(*words, given=json.dumps(pod))
    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    refused = installed.kubectl(*words, given=json.dumps(pod))
    assert "violates PodSecurity" in refused.stderr


def test_what_a_member_gets_is_taken_too(installed: Installed) -> None:
    for words in (("--member", "--observe"), ("--member",)):
        text = printed("--namespace=members", *words)
        installed.done("apply", "--server-side", "-f", "-", given=text)


async def test_the_rights_of_its_account_suffice(installed: Installed, tmp_path: Path) -> None:
    jobs = 3
    before = denied(installed)
    hub = HubProcess(tmp_path, "--store", "kubernetes", "--kubeconfig", str(installed.account))
    hub.data.mkdir(mode=0o700)
    (hub.data / "tokens.csv").touch(mode=0o600)
    (hub.data / "tokens.csv").write_text(TOKENS)
    try:
        await hub.start()
        manifests = [FLEET % "first", FLEET % "second", QUEUE]
        manifests += [JOB % (number, number) for number in range(jobs)]
        words = ("apply", "-f", "-")
        await asyncio.to_thread(installed.done, *words, given="---".join(manifests))
        async with store_of(installed.plane) as store:
            done = await until_all(store, jobs, has_succeeded, "have succeeded")
            assert len(done) == jobs
            store.stamps = AS_THEY_ARE
            for stored in (await store.list(WORKLOADS)).items:
                assert stored.object()["metadata"]["annotations"][CREATED_BY] == "admin"
        standing = await hub.client.ask("fleets", "fleet", "standing")
        assert [queue["queue"] for queue in standing["queues"]] == ["research"]
        names = ("get", "validatingwebhookconfigurations", "-o", "jsonpath={..webhooks[*].name}")
        assert "checks.fairway.dev" in (await asyncio.to_thread(installed.done, *names)).split()
        url = hub.client.access.server
        codes = [
            await asyncio.to_thread(answered, f"{url}/metrics", token)
            for token in ("token-of-prometheus", "token-of-eve", "of-nobody")
        ]
        assert codes == [200, 403, 401]
        # Its kinds are what they must be; it tries to make its six policies so, and goes on with
        # what is there.
        assert denied(installed) - before == 2 * 6
        await is_told_of_a_secret_that_may_not_be_read(installed)
    finally:
        await hub.end()
    # A server ends the watches of a kind when its definition is told who converts it.
    expected = (
        "'train-9'",
        "cannot follow flavors, trying again: the server ended a watch at once",
    )
    warned = [line for line in hub.said if "WARNING" in line]
    assert [line for line in warned if not any(item in line for item in expected)] == []


async def is_told_of_a_secret_that_may_not_be_read(installed: Installed) -> None:
    """And runs once the owner of the namespace lets the hub read it."""
    one = yaml.safe_load(JOB % (9, 9))
    one["metadata"]["namespace"] = "team"
    pod = one["spec"]["template"]["manifests"][0]["spec"]["template"]["spec"]
    pod["containers"][0]["envFrom"] = [{"secretRef": {"name": "key"}}]
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "key", "namespace": "team"},
    }
    await asyncio.to_thread(installed.done, "create", "namespace", "team")
    text = yaml.safe_dump_all([secret, one])
    await asyncio.to_thread(installed.done, "apply", "-f", "-", given=text)
    async with store_of(installed.plane) as store, asyncio.timeout(PATIENCE_SECONDS):
        async for event in await store.watch(EVENTS, start=WatchFrom(bookmarks=True)):
            if event.type == "ADDED" and event.stored.object()["reason"] == "DependencyForbidden":
                told = event.stored.object()
                break
        assert told["involvedObject"]["name"] == "train-9"
        assert told["message"] == "the hub may not read Secret key, which its pods need"
        bound = ("create", "rolebinding", "fairway", "--clusterrole=fairway-hub-secrets")
        account = f"--serviceaccount={HOME}:fairway-hub"
        await asyncio.to_thread(installed.done, *bound, account, "--namespace=team")
        await until_all(store, 4, has_succeeded, "have succeeded")


def denied(installed: Installed) -> int:
    """How many requests the server has denied since it started: nobody said that they may."""
    counted = 'authorization_attempts_total{result="no-opinion"}'
    told = installed.done("get", "--raw", "/metrics").splitlines()
    return sum(int(float(item.rpartition(" ")[2])) for item in told if item.startswith(counted))


def answered(url: str, token: str) -> int:
    """The code of an answer; whose certificate it is does not matter here."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as fault:
        with fault:
            return fault.code


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("get secrets/any -n default", id="read a Secret of somebody else"),
        pytest.param("list secrets -n default", id="list Secrets of somebody else"),
        pytest.param("list secrets --all-namespaces", id="list all Secrets"),
        pytest.param(f"list secrets -n {HOME}", id="list even its own Secrets"),
        pytest.param(f"create secrets -n {HOME}", id="make Secrets"),
        pytest.param("update secrets/any -n default", id="change a Secret of somebody else"),
        pytest.param("patch secrets/any -n default", id="change part of one"),
        pytest.param("create clusterrolebindings", id="hand out rights"),
        pytest.param("patch crd/workloads.fairway.dev", id="change its kinds"),
        pytest.param(
            "patch mutatingadmissionpolicies/created-by.fairway.dev", id="change its policy"
        ),
        pytest.param(
            "patch mutatingadmissionpolicies/submitted-by.fairway.dev",
            id="say who submits native objects",
        ),
        pytest.param(
            "patch validatingadmissionpolicies/held-back.fairway.dev", id="let Jobs run beside it"
        ),
        pytest.param("patch validatingwebhookconfigurations/other", id="change another webhook"),
        pytest.param("delete validatingwebhookconfigurations", id="delete webhooks"),
        pytest.param("create pods -n default", id="run pods"),
        pytest.param("delete jobs -n default", id="delete Jobs of others"),
        pytest.param("update leases/some-node -n kube-node-lease", id="keep nodes alive"),
        pytest.param("delete namespaces", id="delete namespaces"),
        pytest.param("impersonate users", id="act as somebody else"),
        pytest.param("create serviceaccounts/token -n kube-system", id="make tokens"),
    ],
)
def test_its_account_may_not(installed: Installed, words: str) -> None:
    verb, what, *where = words.split()
    resource, _, subresource = what.partition("/")
    if resource == "serviceaccounts":
        asked = [verb, resource, f"--subresource={subresource}"]
    else:
        asked = [verb, what]
    answer = installed.kubectl("auth", "can-i", *asked, *where, as_hub=True)
    assert answer.stdout.strip() == "no", answer.stderr


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"apiGroups": [""], "resources": ["secrets"]}, id="Secrets"),
        pytest.param({"apiGroups": ["*"], "resources": ["*"]}, id="everything"),
        pytest.param({"apiGroups": ["batch"], "resources": ["jobs/*"]}, id="parts of Jobs"),
    ],
)
def test_it_is_not_asked_about_more_than_it_checks(
    installed: Installed, change: dict[str, Any]
) -> None:
    body = checked_writes.configuration({"url": "https://127.0.0.1:1/admit"}, "hub")
    asked = body["webhooks"][0]
    words = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-")
    done = installed.kubectl(*words, given=json.dumps(body), as_hub=True)
    assert done.returncode == 0, done.stderr
    asked["rules"][0] |= change
    refused = installed.kubectl(*words, given=json.dumps(body), as_hub=True)
    assert "a hub is asked only about kinds that it checks" in refused.stderr


def test_secrets_of_a_namespace_are_read_once_its_owner_says_so(installed: Installed) -> None:
    text = (
        "apiVersion: v1\nkind: Secret\n"
        "metadata: {name: key, namespace: default}\nstringData: {a: b}\n"
    )
    installed.done("apply", "-f", "-", given=text)
    look = ("get", "secret", "key", "--namespace=default")
    assert "Forbidden" in installed.kubectl(*look, as_hub=True).stderr
    bound = ("create", "rolebinding", "fairway", "--clusterrole=fairway-hub-secrets")
    account = f"--serviceaccount={HOME}:fairway-hub"
    installed.done(*bound, account, "--namespace=default")
    seen_at_last(  # a server heeds rights a moment after they are given
        lambda: installed.kubectl(*look, as_hub=True).returncode,
        lambda code: code == 0,
        "the right to read it",
    )
    every = ("get", "secrets", "--namespace=default")
    assert "Forbidden" in installed.kubectl(*every, as_hub=True).stderr


def test_people_with_edit_may_submit_and_no_more(installed: Installed) -> None:
    # A server whose controllers all run gathers this role into `edit`, by its label.
    bound = ("create", "rolebinding", "grace", "--clusterrole=fairway-edit", "--user=grace")
    installed.done(*bound, "--namespace=default")

    def may(*words: str) -> bool:
        asked = ("auth", "can-i", *words, "--as=grace")
        return bool(installed.kubectl(*asked).stdout.strip() == "yes")

    seen_at_last(  # a server heeds rights a moment after they are given
        lambda: may("create", "workloads", "--namespace=default"), bool, "the right to submit"
    )
    assert may("list", "works", "--namespace=default")
    assert not may("create", "queues")
    assert not may("create", "works", "--namespace=default")
