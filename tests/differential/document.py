"""Writes docs/differences.md from the list of accepted differences.

    python -m tests.differential.document

A test keeps the page equal to the list.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from tests.differential import comparison, steps
from tests.kubernetes import binaries

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"

BEGINNING = """\
# Where the embedded hub differs from Kubernetes

The embedded hub speaks the Kubernetes API. One script of {count} calls, with kubectl and with the
official Python client, runs against the hub and against a real kube-apiserver ({version}). This
page lists every difference between the two, with its reason. A test fails on a difference that is
not listed, and on a listed difference that no longer occurs. The script is in
`tests/differential/script/`, the recorded answers of the real server are in
`tests/differential/recorded/`.

The comparison leaves out only what differs between any two runs: times, ages, uids, resource
versions, addresses, random suffixes of names, tokens, and the text that `kubectl explain` prints.
It includes garbage collection and the deletion of namespaces. It does not include nodes, nor
controllers that would create Pods: an embedded hub runs no Pods itself.

`python -m tests.differential.document` writes this page from `tests/differential/differences.yaml`.
"""


def page() -> str:
    """The whole page."""
    count = sum(len(group.steps) for group in steps.groups())
    parts = [BEGINNING.format(count=count, version=binaries.VERSION)]
    for topic in comparison.topics():
        reason = textwrap.fill(" ".join(topic["why"].split()), 98)
        parts.append(f"## {topic['topic']}\n\n{reason}\n")
        parts.append("".join(_line(place) for place in topic.get("where", ())))
    return "\n".join(parts)


def _line(place: dict[str, object]) -> str:
    sentences = place.get("steps", "*")
    listed = sentences if isinstance(sentences, list) else [sentences]
    named = "; ".join("any step" if each == "*" else str(each) for each in listed)
    only = f" (kubectl {place['kubectl']})" if "kubectl" in place else ""
    return f"- {place['group']}: {named}{only}\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
