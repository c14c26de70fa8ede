"""Runs a group of the script against one server and returns what came of each step."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import shlex
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kubernetes
import yaml
from kubernetes.client.exceptions import ApiException

from tests.differential import client_calls, normal_form, published
from tests.differential.steps import Group, Step
from tests.kubernetes.binaries import Kubectl

CALL_SECONDS_MAX = 45
REPEAT_SECONDS_MAX = 40
REPEAT_SECONDS = 0.15

# What came of one step: exit status, output, errors; all in normal form.
Outcome = dict[str, Any]


@dataclass(kw_only=True)
class Run:
    """One group on one server with one kubectl; `folder` is its working folder."""

    group: Group
    kubeconfig: Path
    kubectl: Kubectl
    folder: Path
    going: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    printed: dict[str, bytes] = field(default_factory=dict)

    def outcomes(self) -> dict[str, Outcome]:
        """Runs every step that this kubectl can do; the sentence leads to the outcome."""
        for name, content in self.group.files.items():
            (self.folder / name).write_text(content, encoding="utf-8")
        for module in self.group.published:
            published.lay_out(module, self.folder)
        try:
            with self._api_client() as client:
                self.client = client
                _make_namespace(client, self.group.namespace)
                return {
                    step.say: self._outcome(step)
                    for step in self.group.steps
                    if step.can_run(self.kubectl.version)
                }
        finally:
            for process in self.going.values():
                process.kill()
                process.communicate()

    def _api_client(self) -> Any:
        configuration = kubernetes.client.Configuration()
        configuration.retries = False
        kubernetes.config.load_kube_config(
            config_file=str(self.kubeconfig), client_configuration=configuration
        )
        return kubernetes.client.ApiClient(configuration)

    def _outcome(self, step: Step) -> Outcome:
        until = time.monotonic() + REPEAT_SECONDS_MAX
        while True:
            outcome, raw = self._once(step)
            fails = step.until_it_succeeds and outcome.get("exit", 0) != 0
            if step.until in raw and not fails:
                return outcome
            if time.monotonic() > until:
                return {"never": step.until or "succeeded", **outcome}
            time.sleep(REPEAT_SECONDS)

    def _once(self, step: Step) -> tuple[Outcome, str]:
        if step.request is not None:
            outcome = client_calls.request(self.client, self.group.namespace, **step.request)
            return _with_body(outcome, step), str(outcome)
        if step.client:
            return self._call_client(step)
        if step.collect:
            return self._collect(step), ""
        if step.background:
            return self._begin(step), ""
        return self._call_kubectl(step)

    def _call_client(self, step: Step) -> tuple[Outcome, str]:
        function = getattr(client_calls, step.client)
        try:
            result = function(self.client, self.group.namespace)
        except ApiException as error:
            result = client_calls.refusal(error)
        plain = kubernetes.client.ApiClient().sanitize_for_serialization(result)
        return {"out": normal_form.value(plain)}, str(plain)

    def _command(self, step: Step) -> list[str]:
        words = shlex.split(step.kubectl.replace("$NS", self.group.namespace))
        own = [str(self.kubectl.path), f"--kubeconfig={self.kubeconfig}"]
        if not any(word in ("-A", "--all-namespaces") for word in words):
            own.append(f"--namespace={self.group.namespace}")
        return [*own, *words]

    def _environment(self, step: Step) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        # The discovery cache of kubectl lies in its home: each server gets its own. A program that
        # ends at once need not look for memory to give back, which is a fifth of what it costs.
        own = {"HOME": str(self.folder), "TERM": "dumb", "GOGC": "off"}
        return {**kept, **own, **step.env}

    def _call_kubectl(self, step: Step) -> tuple[Outcome, str]:
        try:
            done = subprocess.run(
                self._command(step), input=_sent(step.input),
                capture_output=True, text=True, timeout=CALL_SECONDS_MAX, check=False,
                cwd=self.folder, env=self._environment(step),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"never": f"ended within {CALL_SECONDS_MAX} s"}, ""
        out = normal_form.output(_only(done.stdout, step.only), step.compare)
        outcome = {"exit": done.returncode, "out": out, "err": normal_form.text(done.stderr)}
        return _short(outcome), done.stdout + done.stderr

    def _begin(self, step: Step) -> Outcome:
        process = subprocess.Popen(
            self._command(step), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, cwd=self.folder, env=self._environment(step),
        )  # fmt: skip
        self.going[step.background] = process
        self.printed[step.background] = b""
        self._read(step.background, lambda seen: seen.count(b"\n") >= step.ready)
        return {}

    def _collect(self, step: Step) -> Outcome:
        def enough(seen: bytes) -> bool:
            if step.documents:
                return len(normal_form.documents(seen.decode())) >= step.documents
            return seen.count(b"\n") >= step.lines

        self._read(step.collect, enough)
        process = self.going.pop(step.collect)
        process.kill()
        process.communicate()
        seen = self.printed[step.collect].decode()
        return {"out": normal_form.output(seen, step.compare)}

    def _read(self, name: str, enough: Any) -> None:
        stream = self.going[name].stdout
        assert stream is not None
        until = time.monotonic() + REPEAT_SECONDS_MAX
        with selectors.DefaultSelector() as waiting:
            waiting.register(stream, selectors.EVENT_READ)
            while not enough(self.printed[name]) and time.monotonic() < until:
                if waiting.select(timeout=0.5):
                    read = os.read(stream.fileno(), 65536)
                    if not read:
                        return
                    self.printed[name] += read


def _make_namespace(client: Any, name: str) -> None:
    body = {"metadata": {"name": name}}
    with contextlib.suppress(ApiException):
        kubernetes.client.CoreV1Api(client).create_namespace(body)


def _sent(text: str) -> str:
    """Standard input; the script's one-line YAML becomes JSON, for which old kubectls take it."""
    return json.dumps(yaml.safe_load(text)) if text.startswith("{") else text


def _only(out: str, pattern: str) -> str:
    if not pattern:
        return out
    return "\n".join(line for line in out.splitlines() if re.search(pattern, line))


def _with_body(outcome: Outcome, step: Step) -> Outcome:
    body = normal_form.value(outcome["out"])
    if step.compare == "fields":
        body = normal_form.without_prose(body)
    return {**outcome, "out": body if step.compare != "nothing" else ""}


def _short(outcome: Outcome) -> Outcome:
    return {key: each for key, each in outcome.items() if each not in ("", 0, [])}
