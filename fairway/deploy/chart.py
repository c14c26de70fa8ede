"""The same objects as a Helm chart: settings are values, and optional objects are conditional.

The list of `manifests` is built again with a mark in place of every value; the marks in the text
are then replaced by Helm expressions. Kinds go into the chart's `crds` folder, which Helm applies
first and never removes.

`python -m fairway.deploy.chart FOLDER` writes the chart; a test keeps the committed one equal.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import yaml

from fairway import __version__
from fairway.deploy.manifests import document, parts
from fairway.deploy.settings import SYSTEM, Settings

# The mark for each value in the text, and the Helm expression that replaces it.
_VALUES = {
    "namespace": (".Release.Namespace", "mark-of-namespace"),
    "image": (".Values.image", "mark-of-image"),
    "replicas": (".Values.replicas", "mark-of-replicas"),
    "cpu": (".Values.cpu", "mark-of-cpu"),
    "memory": (".Values.memory", "mark-of-memory"),
}
_NUMBERS = frozenset({"replicas"})
_MARK_OF_OPTIONS = "mark-of-options"
_QUESTIONS = {
    "apart": f'ne .Release.Namespace "{SYSTEM}"',
    "admission_policy": ".Values.admissionPolicy",
    "admission_webhook": ".Values.admissionWebhook",
    "network_policy": ".Values.networkPolicy",
    "monitoring": ".Values.monitoring",
    "all_secrets": ".Values.allSecrets",
}
_REMARKS = {
    "image": "An image made from deploy/Containerfile, in a registry of yours.",
    "replicas": "One leads; another takes over when it is gone.",
    "cpu": "Processor that each replica asks for.",
    "memory": "Memory that each replica asks for, and its limit; see docs/sizing.md.",
    "options": "Further options of `fairway up`, each as one text; see docs/guides/sign-in.md.",
    "admissionPolicy": "Policies that change what is submitted; false before Kubernetes 1.36.",
    "admissionWebhook": "The server asks the hub about writes; see docs/guides/install.md.",
    "networkPolicy": "Only API servers and names are reached; false where those have other ports.",
    "monitoring": "ServiceMonitor, alert rules and a dashboard; needs the Prometheus operator.",
    "allSecrets": "Secrets that workloads name are read in every namespace.",
}


def files() -> dict[str, str]:
    """All files of the chart except those of the kinds, by path."""
    return {
        "Chart.yaml": _chart(),
        "values.yaml": _values(),
        "templates/hub.yaml": _templates(),
        "templates/NOTES.txt": _NOTES,
    }


def _chart() -> str:
    return document(
        {
            "apiVersion": "v2",
            "name": "fairway",
            "description": "One scheduler for AI workloads on a fleet of clusters",
            "type": "application",
            "version": __version__,
            "appVersion": __version__,
            "kubeVersion": ">=1.30.0-0",
        }
    )


def _values() -> str:
    settings = Settings()
    values = {
        "image": settings.image,
        "replicas": settings.replicas,
        "cpu": settings.cpu,
        "memory": settings.memory,
        "options": list(settings.options),
        "admissionPolicy": settings.admission_policy,
        "admissionWebhook": settings.admission_webhook,
        "networkPolicy": settings.network_policy,
        "monitoring": settings.monitoring,
        "allSecrets": settings.all_secrets,
    }
    lines = [f"# {_REMARKS[key]}\n{yaml.safe_dump({key: value})}" for key, value in values.items()]
    return "\n".join(lines)


def _templates() -> str:
    marks = {name: mark for name, (_, mark) in _VALUES.items()}
    marked = Settings(**marks, options=[_MARK_OF_OPTIONS])  # type: ignore[arg-type]  # only texts are marked
    lines = []
    for part in parts(marked):
        text = f"---\n{_with_values(document(part.object))}"
        if part.only_with:
            text = f"{{{{- if {_QUESTIONS[part.only_with]} }}}}\n{text}{{{{- end }}}}\n"
        lines.append(text)
    return "# Made by `make generate` from fairway/deploy.\n" + "".join(lines)


def _with_values(text: str) -> str:
    # Escape the braces of Prometheus and Grafana, so that Helm ignores them.
    text = re.sub(r"\{\{|\}\}", lambda match: f'{{{{ "{match[0]}" }}}}', text)
    text = re.sub(
        rf"^( *)- {_MARK_OF_OPTIONS}\n",
        r"\1{{- range .Values.options }}\n\1- {{ . | quote }}\n\1{{- end }}\n",
        text,
        flags=re.MULTILINE,
    )
    for name, (value, mark) in _VALUES.items():
        whole = value if name in _NUMBERS else f"{value} | quote"
        text = re.sub(rf"(?<=: ){mark}$", f"{{{{ {whole} }}}}", text, flags=re.MULTILINE)
        text = text.replace(mark, f"{{{{ {value} }}}}")
    return text


_NOTES = """\
Fairway is on its way to namespace {{ .Release.Namespace }}.

  kubectl -n {{ .Release.Namespace }} rollout status deployment/fairway-hub

Then give it clusters and queues; see docs/guides/install.md. Helm never changes kinds that are
there: before an upgrade, `fairway crds | kubectl apply --server-side -f -`.
"""


def main() -> None:
    folder = Path(sys.argv[1])
    for name, text in files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()
