"""Every relative link of every page leads somewhere, including headings, and no merge is left half done."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for where in ("*.md", ".github/**/*.md", "docs/**/*.md", "resources/**/*.md")
    for path in ROOT.glob(where)
)
LINK = re.compile(r"\]\(([^()\s]+)\)")


def prose(page: Path) -> str:
    """Without code, in which brackets and hashes mean something else."""
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """Forges' anchors for headings: lower case, no punctuation, a hyphen for a space."""
    without_code = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ +(.+?)\s*$", without_code, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path) if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


def test_there_are_pages_and_links() -> None:
    assert ROOT / "README.md" in PAGES
    assert sum(len(LINK.findall(prose(page))) for page in PAGES) > 30


def test_a_link_that_leads_nowhere_is_found() -> None:
    readme = ROOT / "README.md"
    assert leads_somewhere(readme, "docs/security.md#who-reaches-tensorflows-port")
    assert not leads_somewhere(readme, "docs/security.md#no-such-heading")
    assert not leads_somewhere(readme, "docs/no_such_page.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(prose(page)) if not re.match(r"[a-z]+:", link)]
    assert [link for link in links if not leads_somewhere(page, link)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_of_a_merge_is_left(page: Path) -> None:
    assert re.findall(r"^(?:<{7}|>{7}) .*", page.read_text(encoding="utf-8"), re.M) == []
