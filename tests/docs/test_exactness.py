"""docs/exactness.md counts the scenarios that there are."""

from __future__ import annotations

import re
from pathlib import Path

from tests.exactness.matrix import EVEN, EXTREME, THREE, UNEVEN
from tests.exactness.names import CORE, EVERY

PAGE = Path(__file__).parents[2] / "docs" / "exactness.md"


def test_the_page_counts_the_scenarios_of_each_shares() -> None:
    rows = re.findall(r"^\| (\([\d, ]+\)) \| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.M)
    every = {str(shares): str(len(EVERY)) for shares in (UNEVEN, THREE)}
    assert dict(rows) == every | {str(shares): str(len(CORE)) for shares in (EXTREME, EVEN)}
