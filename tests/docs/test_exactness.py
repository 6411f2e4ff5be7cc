"""docs/exactness.md counts the existing scenarios."""

from __future__ import annotations

import re
from pathlib import Path

from tests.exactness.matrix import EVEN, EXTREME, NAMES, THREE, UNEVEN
from tests.exactness.names import EVERY

PAGE = Path(__file__).parents[2] / "docs" / "exactness.md"


def test_the_page_counts_the_scenarios_of_each_shares() -> None:
    rows = re.findall(r"^\| (\([\d, ]+\)) \| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.M)
    every = {str(members.shares): str(len(EVERY)) for members in (UNEVEN, THREE)}
    assert dict(rows) == every | {
        str(members.shares): str(len(NAMES[members])) for members in (EXTREME, EVEN)
    }
