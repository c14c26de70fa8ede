"""Writes the table of docs/guides/native-objects.md on how each kind is held back on the hub.

    python tools/held_back.py              write the table into the page
    python tools/held_back.py --print      print it instead

A test keeps the committed page equal to `fairway.kinds.held_back`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fairway.kinds.held_back import GATED, Means, groups
from fairway.kinds.registry import built_in

TARGET = Path(__file__).parent.parent / "docs" / "guides" / "native-objects.md"
BEGIN, END = "<!-- table: held back -->\n", "<!-- end of table -->\n"
_HEAD = (
    "| kind | held back by | why that holds | without the policy that writes | named later |\n"
    "|---|---|---|---|---|\n"
)


def table() -> str:
    """One line for each means."""
    lines = [_HEAD]
    for group in groups(built_in()):
        kinds: dict[str, list[str]] = {}
        for version, name in group.kinds:
            kinds.setdefault(name, []).append(version)
        named = ", ".join(f"{name} ({', '.join(found)})" for name, found in kinds.items())
        lines.append(f"| {named} | {_how(group.means)} | {group.means.why} |"
                     f" {_without_policy(group.means)} | {_late(group.means)} |\n")  # fmt: skip
    return "".join(lines)


def _how(means: Means) -> str:
    if not means.is_possible:
        return "nothing: refused; wrap it in a Workload"
    if means is GATED:
        return f"the gate `{means.value}` in `{means.field}`"
    return f"`{means.field}: {str(means.value).lower()}`"


def _without_policy(means: Means) -> str:
    return "refused until its author writes that" if means.is_possible else "refused"


def _late(means: Means) -> str:
    if not means.is_possible:
        return "refused"
    return "held from then on" if means.works_late else "refused: recreate it"


def page(text: str) -> str:
    """The page with the table as it must be."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


def main() -> None:
    if "--print" in sys.argv:
        print(table(), end="")
    else:
        TARGET.write_text(page(TARGET.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
