"""What tests of the window share; Qt's own warnings fail a test (see pyproject.toml)."""

from __future__ import annotations

import pytest

from app.bridge import Bridge
from tests.app.fake_core import FakeCore
from tests.core.fake_node import started


@pytest.fixture
def bridge(qapp: object) -> Bridge:
    return Bridge()


@pytest.fixture
def core(bridge: Bridge) -> FakeCore:
    """A core whose node has started: this laptop is called "here" and knows no other yet."""
    core = FakeCore(bridge)
    core.happen(started())
    return core
