"""Nodes whose runs communicate over links in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.run.context import RunLimits
from core.vocabulary.plan import RunSpec
from tests.core.run.lan import Lan, project


@pytest.fixture
def limits() -> RunLimits:
    """Override by ``parametrize``."""
    return RunLimits()


@pytest.fixture
async def lan(tmp_path: Path, limits: RunLimits) -> AsyncIterator[Lan]:
    async with Lan(tmp_path, limits=limits) as lan:
        yield lan


@pytest.fixture
async def three(tmp_path: Path, limits: RunLimits) -> AsyncIterator[Lan]:
    async with Lan(tmp_path, ("Anna", "Ben", "Cleo"), limits) as lan:
        yield lan


@pytest.fixture
def spec(tmp_path: Path) -> RunSpec:
    # Not directly in the temporary folder: that one is too broad to be a project.
    return project(tmp_path / "somewhere" / "digits")
