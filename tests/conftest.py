"""What holds for all tests.

Generated cases are the same in every run and have no time limit, so that a commit is judged by what
it changes. `HYPOTHESIS_PROFILE=long` looks for new ones instead, in the folders that offer it.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("commit", derandomize=True, deadline=None)
settings.register_profile("long", deadline=None)
settings.load_profile("long" if os.environ.get("HYPOTHESIS_PROFILE") == "long" else "commit")

pytest_plugins = ["tests.kubernetes.fixtures"]
