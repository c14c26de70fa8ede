"""Child processes that end with their parent, even if the parent is killed.

A killed hub closes its pipes, but a child that computes or waits for something else does not notice
that, and would take memory and processors from the hub that starts next.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_LOOK_SECONDS = 1.0


def end_with_parent(parent: int) -> None:
    """Ends this process as soon as its parent, given by its id, has ended."""
    request = death_request(parent)
    if request is not None:
        request()
    else:
        threading.Thread(target=_look, args=(parent,), daemon=True).start()


def death_request(parent: int) -> Callable[[], None] | None:
    """A call that lets the system kill the calling process with its parent; None: it cannot.

    What can be loaded is loaded here, so that the call is safe between fork and exec.
    """
    if sys.platform != "linux":
        return None
    import ctypes  # noqa: PLC0415 - slow to import, and needed only here

    prctl = ctypes.CDLL(None).prctl

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)  # the parent ended before

    return ask


def _look(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)
