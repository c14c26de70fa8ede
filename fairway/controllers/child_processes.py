"""How Python processes of the hub are started.

A hub may be started in any folder, and Python puts the current folder first in the path of
`python -m` and `python -c`: the child would run a `json.py` that lies there. So the current folder
is left out, and the child gets the same package as the hub, wherever that comes from. What was
installed elsewhere on purpose (PYTHONPATH, the user's own folder) stays. No child outlives its hub.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import fairway

_FOLDER = str(Path(fairway.__file__).absolute().parents[1])
# The package folder comes first only to import the package, so that the child has our version.
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); import fairway; "
    "sys.path.append(sys.path.pop(0)); from fairway.parent_death import end_with_parent; "
    "end_with_parent(int(sys.argv[2])); from {module} import main; main()"
)


async def start_python(module: str) -> Process:
    """Starts a child that runs the `main` of a module; its standard streams are pipes."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-c",
        _PROGRAM.format(module=module),
        _FOLDER,
        str(os.getpid()),
        stdin=PIPE,
        stdout=PIPE,
        env=_environment(),
        start_new_session=True,  # Ctrl-C is for the hub, which then ends its child
    )


def _environment() -> dict[str, str]:
    """The hub's environment; empty entries of PYTHONPATH, as in `:/opt/lib`, are removed.

    An empty entry means the current folder.
    """
    environment = dict(os.environ)
    if "PYTHONPATH" in environment:
        entries = environment["PYTHONPATH"].split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in entries if entry)
    return environment
