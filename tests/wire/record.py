"""What an agent and its hub say to each other; `tests.upgrade.record` keeps it for each version.

The agent is a real one, with a simulated cluster on virtual time; the hub's part is a work that
runs, is changed and is buried, and one that the hub loses and gets back.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairway import __version__
from fairway.agent.settings import AgentSettings
from fairway.api.codec import decode
from fairway.api.work import Work
from fairway.store.interface import ResourceKey
from fairway.store.keys import CLUSTERS
from tests.agent.stage import AgentStore, Stage, cluster

Plain = dict[str, Any]


def work(name: str, *, term: int = 7) -> Plain:
    """A work as a hub writes it, with all that it can say."""
    container = {
        "name": "main",
        "image": "training",
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}}
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "Work",
        "metadata": {
            "name": f"default.{name}",
            "namespace": "fairway-cluster-here",
            "annotations": {"fairway.dev/placement": '{"cluster":"here","attempt":1}'},
        },
        "spec": {
            "cluster": "here",
            "workload": {"namespace": "default", "name": name, "uid": "1234"},
            "attempt": 1,
            "term": term,
            "desired": "Run",
            "manifests": [{"object": {**job, "spec": {"parallelism": 2, "template": template}}}],
            "podSets": [{"name": "main", "count": 2}],
            "runSecondsEstimate": 60,
            "stop": {"signal": "SIGTERM", "graceSeconds": 5},
            "stopWhenSilentSeconds": 3600,
        },
    }


class Listener(AgentStore):
    """Writes down what the agent writes, as far as it is taken."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.store)
        self.calls: list[Plain] = []

    def __getattr__(self, name: str) -> Any:
        reached = super().__getattr__(name)
        if name in ("get", "list", "watch"):
            return reached

        async def noted(kind: ResourceKey, *given: Any, **more: Any) -> Any:
            call = _call(name, kind, given, more)
            answer = await reached(kind, *given, **more)
            self.calls.append(call)
            return answer

        return noted


def _call(verb: str, kind: ResourceKey, given: tuple[Any, ...], more: Plain) -> Plain:
    call: Plain = {
        "verb": verb,
        "kind": [kind.group, kind.version, kind.plural],
        "namespace": more.get("namespace", ""),
        "subresource": more.get("subresource", ""),
    }
    match verb:
        case "patch":
            name, patch = given
            call |= {"name": name, "type": patch.type, "body": patch.body}
        case "delete":
            call |= {"name": given[0]}
        case _:
            call |= {"body": given[0]}
    return json.loads(json.dumps(call))  # type: ignore[no-any-return]  # as it was at that moment


async def conversation(works: Sequence[Plain] | None = None) -> Plain:
    """All that is said, in the order in which it is; `works` are of a hub of another version."""
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder), cluster(), AgentSettings())
        listener = stage.reached = Listener(stage)
        await stage.open()
        runs, lost = (decode(other, Work) for other in works or (work("runs"), work("lost")))
        try:
            await stage.put(runs)
            await stage.put(lost)
            await stage.until("Running", runs)
            await stage.until("Running", lost)
            await stage.delete(lost)
            await stage.passes(10)
            await stage.bury(runs)
            await stage.passes(30)
            states = await stage.states()
            reads = [(await stage.store.get(CLUSTERS, "here")).object()]
        finally:
            await stage.close()
    return {
        "version": __version__,
        "hub": [work("runs"), work("lost"), *reads],
        "agent": listener.calls,
        "told": {name: state.phase for name, state in sorted(states.items())},
    }
