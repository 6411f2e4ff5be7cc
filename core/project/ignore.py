"""Decides which files stay behind when a project travels: .tandemignore, .gitignore as git reads it, caches,
secrets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from core.runtime.regular_file import NotRegular, open_regular

TANDEM_RULES = ".tandemignore"
GIT_RULES = ".gitignore"
RULES_BYTES = 1 << 20

_JUNK = re.compile(
    r"\.(git|hg|svn|bzr|venv|cache|ipynb_checkpoints|\w+_cache|hypothesis|tox|nox|eggs|idea|vscode|coverage)"
    r"|\.(DS_Store|Trash|Trashes|fseventsd|Spotlight-V100)|__MACOSX|Thumbs\.db|desktop\.ini"
    r"|__pycache__|venv|node_modules|.*(\.pyc|\.pyo|\.swp|~|\.egg-info)",
    re.DOTALL,
)
_SECRET = re.compile(
    r"\.(env(\..*|rc)?|netrc|ssh|gnupg|aws|kube|pypirc|git-credentials)|id_(rsa|ecdsa|ed25519)"
)

Reason = Literal["rule", "junk", "secret"]
Rules = list[tuple[str, GitIgnoreSpecPattern]]
"""Each line's text without ``!``, and its pattern."""


class IgnoreRules:
    """Rules of one project's folder. ``enter`` each folder before asking about its entries.

    A decision of .tandemignore, either way, beats .gitignore and the built-in lists; among files of one kind
    the deepest that decides wins. Above the folder, .gitignore counts up to the repository's root.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._above = _rules_above(folder)
        self._git: dict[str, Rules] = {}
        self._tandem: dict[str, Rules] = {}

    def enter(self, inside: str) -> None:
        """Read the rules in ``inside``: ``""`` for the project's folder, else a relative path."""
        for name, rules in ((GIT_RULES, self._git), (TANDEM_RULES, self._tandem)):
            if read := _read_rules(self._folder / inside / name):
                rules[inside] = read

    def why_left_out(self, path: str, *, is_folder: bool) -> Reason | None:
        """Why an entry is left out; None: it is sent."""
        decision = _decide(self._tandem, path, is_folder)
        if decision is not None:
            return "rule" if decision else None
        name = path.rpartition("/")[2]
        if _SECRET.fullmatch(name):
            return "secret"
        if is_junk(name) or (is_folder and _is_environment(self._folder / path)):
            return "junk"
        decision = _decide(self._git, path, is_folder)
        if decision is None:
            decision = self._decide_above(path, is_folder)
        return "rule" if decision else None

    def sends(self, path: str) -> bool:
        """Whether a line of .tandemignore includes exactly this file (``!NAME``)."""
        return _decide(self._tandem, path, False) is False

    def keeps_here(self, path: str) -> bool:
        """Whether a file never leaves this laptop: by .tandemignore, or as a secret. Needs no ``enter``."""
        names = path.split("/")
        for depth in range(1, len(names) + 1):
            self.enter("/".join(names[: depth - 1]))
            decision = _decide(self._tandem, "/".join(names[:depth]), depth < len(names))
            if decision or (decision is None and _SECRET.fullmatch(names[depth - 1])):
                return True
        return False

    def _decide_above(self, path: str, is_folder: bool) -> bool | None:
        for prefix, rules in self._above:
            decision = _last_match(rules, f"{prefix}/{path}", is_folder)
            if decision is not None:
                return decision
        return None


def is_junk(name: str) -> bool:
    """Caches and editors' backup files, by name."""
    return _JUNK.fullmatch(name) is not None


def _is_environment(folder: Path) -> bool:
    """Whether it is a virtual or conda environment, whatever its name."""
    return (folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()


def _last_match(rules: Rules, path: str, is_folder: bool) -> bool | None:
    """The decision of the last rule that names exactly this entry: True leaves it out, None: no rule does.

    pathspec's own check also matches everything below an entry, so it cannot re-include a folder's content
    (``*``, ``!*/``, ``!*.py``). git asks at each level, and so does this: the walk descends level by level.
    """
    whole = path + "/" * is_folder
    name = whole[path.rfind("/") + 1 :]
    for text, pattern in reversed(rules):
        subject = whole if "/" in text.rstrip("/") else name
        result = pattern.match_file(subject)
        if result is None or pattern.include is None:
            continue
        end = result.match.end()
        # Group: the "/" after a folder's name. Not at the end: the rule names a folder above this entry.
        itself = (
            end < len(subject) if text.endswith("/**") else not result.match.lastgroup or end == len(subject)
        )
        if itself:
            return pattern.include
    return None


def _decide(rules: dict[str, Rules], path: str, is_folder: bool) -> bool | None:
    inside = path
    while inside:
        inside = inside.rpartition("/")[0]
        if inside in rules:
            decision = _last_match(rules[inside], path[len(inside) + 1 :] if inside else path, is_folder)
            if decision is not None:
                return decision
    return None


def _rules_above(folder: Path) -> list[tuple[str, Rules]]:
    """Each .gitignore between the folder and its repository's root, nearest first, with the relative path
    down."""
    found: list[tuple[str, Rules]] = []
    for above in [folder, *folder.parents]:
        if above != folder and (rules := _read_rules(above / GIT_RULES)):
            way = folder.relative_to(above).parts
            steps = ["/".join(way[: depth + 1]) for depth in range(len(way))]
            if any(_last_match(rules, step, is_folder=True) for step in steps):
                return []  # the repository excludes this very folder; the user asks for it all the same
            found.append((steps[-1], rules))
        if (above / ".git").exists():
            return found
    return []


def _read_rules(path: Path) -> Rules:
    try:
        with open_regular(path) as file:
            text = file.read(RULES_BYTES).decode("utf-8-sig", errors="replace")
    except (OSError, NotRegular):
        return []
    rules: Rules = []
    for line in text.splitlines():
        try:
            pattern = GitIgnoreSpecPattern(line)
        except (ValueError, re.error):
            continue  # git skips a line that it cannot parse
        if pattern.include is not None:
            rules.append((line.strip().removeprefix("!"), pattern))
    return rules
