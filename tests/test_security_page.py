"""docs/security.md names the test of each promise: they must exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
NAMED = re.findall(r"`([\w/]+\.py)::(\w+)`", (TESTS.parent / "docs" / "security.md").read_text("utf-8"))


@pytest.mark.parametrize(("path", "test"), NAMED, ids=[test for _, test in NAMED])
def test_a_test_that_the_page_names_is_there(path: str, test: str) -> None:
    assert re.search(rf"^(async )?def {test}\(", (TESTS / path).read_text("utf-8"), re.MULTILINE)


def test_the_page_names_tests() -> None:
    assert len(NAMED) > 25
