"""ARCHITECTURE.md draws the house as it is."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_every_decision_is_listed_and_says_its_three_things() -> None:
    assert len(DECISIONS) >= 15
    for number, path in enumerate(DECISIONS, start=1):
        text = path.read_text(encoding="utf-8")
        assert path.name.startswith(f"{number:04}-")
        assert text.startswith(f"# {number:04}: ")
        assert re.findall(r"^## (.+)$", text, re.M) == ["Context", "Decision", "Consequences"]
        assert f"](docs/decisions/{path.name})" in section("Decisions")
        assert len(text.splitlines()) <= 50, "one screen"
