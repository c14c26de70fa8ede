"""How Python processes of the hub are started.

A person starts a hub in any folder, and Python puts the current folder first in the path of
`python -m` and `python -c`: a `json.py` that lies there would be run by the child. So it is left
out, and the child has this very package, wherever the hub has it from. What was installed elsewhere
on purpose (PYTHONPATH, the user's own folder) stays.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import fairway

_FOLDER = str(Path(fairway.__file__).absolute().parents[1])
# The folder of the package comes first for the package alone, so that the child is of our version.
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); import fairway; "
    "sys.path.append(sys.path.pop(0)); from {module} import main; main()"
)


async def start_python(module: str) -> Process:
    """A child that runs the `main` of a module, to be talked to over its standard streams."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-c",
        _PROGRAM.format(module=module),
        _FOLDER,
        stdin=PIPE,
        stdout=PIPE,
        env=_environment(),
        start_new_session=True,  # Ctrl-C is for the hub, which then ends its child
    )


def _environment() -> dict[str, str]:
    """That of the hub; an empty entry in PYTHONPATH, as `:/opt/lib` has, is the current folder."""
    environment = dict(os.environ)
    if "PYTHONPATH" in environment:
        entries = environment["PYTHONPATH"].split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in entries if entry)
    return environment
