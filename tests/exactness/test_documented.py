"""docs/exactness.md's tables of patterns and scripts name their tests, and omit none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.exactness.names import SCENARIOS
from tests.exactness.script_names import SCRIPTS

ROOT = Path(__file__).parents[2]
SAID = (ROOT / "docs/exactness.md").read_text()
TESTS = {path.name for path in ROOT.glob("tests/**/test_*.py")}


def rows(begin: str) -> list[list[str]]:
    """The first table after a heading: its cells without the header."""
    behind = SAID[SAID.index(begin) :]
    lines = re.search(r"(?:^\|.*\n)+", behind, re.M)
    assert lines, begin
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[0].splitlines()[2:]]


PATTERNS = rows("### Patterns in scripts")
OUTCOMES = ("exact", "told", "refused", "a failure")


@pytest.mark.parametrize("row", PATTERNS, ids=lambda row: row[0][:40])
def test_a_pattern_is_exact_or_told_and_names_its_tests(row: list[str]) -> None:
    assert row[1].startswith(OUTCOMES), row[1]
    tests = re.findall(r"`([\w.]+)`", row[-1])
    assert tests, "no test"
    assert set(tests) <= SCENARIOS.keys() | TESTS, set(tests) - SCENARIOS.keys() - TESTS


def test_every_script_is_listed_with_what_comes_of_it() -> None:
    listed = {row[0].strip("`"): row[2] for row in rows("### Scripts of every family")}
    expected = {
        name: "exact, and told" if script.told else "exact by gathering" if script.gathers else "exact"
        for name, script in SCRIPTS.items()
    }
    assert listed == expected
    assert len(SCRIPTS) >= 30
    assert sum(script.core for script in SCRIPTS.values()) >= 6, "in `make test`"
