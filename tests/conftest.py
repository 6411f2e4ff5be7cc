"""What holds for every test."""

import os

import pytest
from hypothesis import HealthCheck, settings
from PySide6.QtCore import QThread

# Windows are tested without a screen.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

# The same examples each time, and none that fails because the machine is slow. For a longer search:
# pytest --hypothesis-profile=search
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "search", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")

# Qt takes the thread that makes its first object for the main one. Without this it may be a worker: `tandem
# install-desktop` draws its icons in one, and the QApplication of a later test would complain.
QThread.currentThread()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pumps", action="store_true", help="wait for trainers' pipes as Windows has to")


@pytest.fixture(autouse=True)
def pumps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.config.getoption("--pumps"):
        monkeypatch.setattr("core.supervisor.spawn.needs_pumps", lambda: True)


@pytest.fixture(scope="session")
def namespaces() -> None:
    """Network namespaces, which only Linux has and some systems forbid: elsewhere these tests cannot run, and
    say which of the two it is."""
    from tests.lab.network import why_none

    if why := why_none():
        pytest.skip(why)
