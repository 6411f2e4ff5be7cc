"""ARCHITECTURE.md matches the code: layers, folders, decisions, and existing files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_house import LAYERS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
PATH = re.compile(r"`((?:app|bench|core|docs|packaging|resources|tandem_laptops|tests)/[\w./-]*)(?:::\w+)?`")
DRAWN = re.compile(r"(?<![\w./`-])(?:app|bench|core|tests)/[\w/]+\.py\b")
"""In a diagram, which has no backticks."""


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_layers_are_those_of_the_house() -> None:
    rows = re.findall(r"^\| (\d) \| (.+) \|$", section("Layers"), re.M)
    drawn = {int(number): set(re.findall(r"`([\w.]+)`", names)) for number, names in rows}
    assert drawn == dict(enumerate(LAYERS, start=1))


def test_every_folder_has_its_line() -> None:
    named = {
        name.rstrip("/")
        for name in re.findall(r"^\| (.+?) \|", section("Folders"), re.M)
        for name in PATH.findall(name)
    }
    packages = [
        *ROOT.glob("app/**/__init__.py"),
        *ROOT.glob("core/**/__init__.py"),
        *ROOT.glob("tests/*/__init__.py"),
    ]
    folders = {path.parent.relative_to(ROOT).as_posix() for path in packages}
    assert folders - named - {"core", "app"} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = {*PATH.findall(text), *DRAWN.findall(text)}
    # docs/security.md names tests by their path under tests/; tests/test_security_page.py checks that.
    assert {
        name for name in named if not (ROOT / name).exists() and not (ROOT / "tests" / name).exists()
    } == set()


def test_every_decision_is_listed_and_says_its_three_things() -> None:
    assert len(DECISIONS) >= 15
    for number, path in enumerate(DECISIONS, start=1):
        text = path.read_text(encoding="utf-8")
        assert path.name.startswith(f"{number:04}-")
        assert text.startswith(f"# {number:04}: ")
        assert re.findall(r"^## (.+)$", text, re.M) == ["Context", "Decision", "Consequences"]
        assert f"](docs/decisions/{path.name})" in section("Decisions")
        assert len(text.splitlines()) <= 50, "one screen"


def test_a_file_that_a_diagram_names_is_there() -> None:
    diagrams = re.findall(r"^```mermaid\n(.*?)^```", PAGE, re.M | re.S)
    named = set(re.findall(r"\b(?:app|core)/[\w/]+\.py\b", "".join(diagrams)))
    assert named
    assert {name for name in named if not (ROOT / name).exists()} == set()
