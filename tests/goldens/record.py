"""Writes the goldens: python -m tests.goldens.record"""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.goldens import command_line, interfaces
from tests.goldens.sentences import sentences

HERE = Path(__file__).parent
GOLDENS = {
    "api.txt": interfaces.api,
    "command-line.txt": command_line.text,
    "metrics.txt": interfaces.metrics,
    "sentences.txt": sentences,
}
QUESTIONS = HERE / "questions.json"


def main() -> None:
    for name, text in GOLDENS.items():
        (HERE / name).write_text(text())
    QUESTIONS.write_text(asyncio.run(interfaces.questions()))


if __name__ == "__main__":
    main()
