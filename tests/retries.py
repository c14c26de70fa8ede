"""A test that is tried again begins from a clean state.

pytest-rerunfailures keeps what lives longer than a test: a second try would meet the servers of the
first, with whatever it left there. Here every fixture ends before the second try and is made anew,
whatever its scope, so no test has to think of its retry. Reruns are few; a server's start is cheap
beside a retry that says nothing.
"""

from __future__ import annotations

import pytest
import pytest_rerunfailures


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Ends all fixtures of the first try, also those that pytest-rerunfailures set aside."""
    if getattr(item, "execution_count", 1) > 1:
        pytest_rerunfailures._restore_suspended_finalizers(item)
        item.session._setupstate.teardown_exact(None)
