"""Setup for every test."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from PySide6.QtCore import QThread

# Windows are tested without a screen.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

# The same examples each time, and no failure because the machine is slow. For a longer search: pytest
# --hypothesis-profile=search
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "search", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")

# Qt takes the thread that makes its first object for the main one. Without this it may be a worker: `tandem
# install-desktop` draws its icons in one, and a later test's QApplication would complain.
QThread.currentThread()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pumps", action="store_true", help="wait for trainers' pipes as Windows has to")
    parser.addoption("--short", action="store_true", help="leave out the tests marked complete")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--short"):
        left = [item for item in items if item.get_closest_marker("complete") is not None]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item.get_closest_marker("complete") is None]


@pytest.fixture(autouse=True)
def pumps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.config.getoption("--pumps"):
        monkeypatch.setattr("core.supervisor.spawn.needs_pumps", lambda: True)


@pytest.fixture(scope="session")
def namespaces() -> None:
    """Network namespaces exist only on Linux, and some systems forbid them: elsewhere these tests are
    skipped, with the reason."""
    from tests.lab.network import why_none

    if why := why_none():
        pytest.skip(why)


@pytest.fixture
def within_walls() -> Iterator[Path]:
    """A folder that another laptop's script can also reach: a test talks to it there during training."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="tandem-", dir=shared if shared.is_dir() else None) as folder:
        yield Path(folder)
