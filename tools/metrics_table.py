"""Writes the tables of docs/guides/metrics.md: every metric, and every label with its limit.

    python tools/metrics_table.py              write the tables into the page
    python tools/metrics_table.py --print      print them instead

A test keeps the committed page equal to what a hub serves.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fairway.api.fleet_metrics import FLEET_METRICS, MEANINGS, OTHER, VALUES_MOST
from fairway.server.metrics import Metrics

TARGET = Path(__file__).parent.parent / "docs" / "guides" / "metrics.md"
END = "<!-- end of table -->\n"
_OF_FLEET = {metric.name for metric in FLEET_METRICS}


def fleet_table() -> str:
    """The metrics of the fleet."""
    return _table(is_of_fleet=True)


def hub_table() -> str:
    """What a replica counts about itself."""
    return _table(is_of_fleet=False)


def labels_table() -> str:
    """The labels of the fleet's metrics."""
    lines = ["| label | says | values at most |\n|---|---|---|\n"]
    for label, meaning in MEANINGS.items():
        most = VALUES_MOST.get(label)
        limit = f"{most}, and `{OTHER}`" if most else "a closed set"
        lines.append(f"| `{label}` | {meaning} | {limit} |\n")
    return "".join(lines)


TABLES = {"fleet": fleet_table, "labels": labels_table, "hub": hub_table}


def _table(*, is_of_fleet: bool) -> str:
    lines = ["| metric | type | labels | |\n|---|---|---|---|\n"]
    for name, kind, labels, text in Metrics().definitions():
        if (name in _OF_FLEET) == is_of_fleet:
            shown = f"{name}_total" if kind == "counter" else name
            named = ", ".join(f"`{label}`" for label in labels)
            lines.append(f"| `{shown}` | {kind} | {named} | {text} |\n")
    return "".join(lines)


def page(text: str) -> str:
    """The page with the tables as they must be."""
    for name, table in TABLES.items():
        begin = f"<!-- table: {name} -->\n"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(END)
        text = f"{before}{begin}{table()}{END}{after}"
    return text


def main() -> None:
    if "--print" in sys.argv:
        print("\n".join(table() for table in TABLES.values()), end="")
    else:
        TARGET.write_text(page(TARGET.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
