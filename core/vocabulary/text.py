"""Makes text from other laptops and from scripts safe to show on a terminal or in a window. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

MAX_NAME = 64
LOG_LINES_KEPT = 400
"""Lines of a task's output that the state keeps for a screen that opens late."""
LOG_LINE_LENGTH = 5_000
"""Characters of one such line: real trainers' are shorter."""
LOG_LENGTH = 100_000
"""Characters of all of a task's lines together."""

_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\Z)"  # OSC, DCS and the like, up to their end
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]",
    re.S,
)
_DROPPED = ("Cc", "Cf", "Cs", "Co", "Cn")
"""Controls, invisible and direction-turning characters, lone surrogates, private and unassigned ones."""
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters that look blank."""


def plain(text: str, limit: int = 200) -> str:
    """One line of ordinary characters, at most ``limit`` of them; longer text ends in ``…``."""
    # Cut first: a peer may send megabytes, and only the beginning is ever shown.
    line = " ".join(_visible(text[: limit * 8 + 1024]).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def capitalised(words: str) -> str:
    """``words`` with a capital first letter. ``str.capitalize`` would change the other letters, too."""
    return words[:1].upper() + words[1:]


def spelled(text: str) -> str:
    """The whole text, with each character that hides, reorders or breaks lines spelled out
    (CVE-2021-42574)."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(sign if is_seen(sign) else f"⟨U+{ord(sign):04X}⟩" for sign in text)


def is_seen(sign: str) -> bool:
    """Whether this character is visible and does not move or hide others."""
    return unicodedata.category(sign) not in (*_DROPPED, "Zl", "Zp") and sign not in _BLANK


def plain_lines(text: str, limit: int = 500) -> list[str]:
    """Lines as a terminal shows them: after ``\\r`` or backspaces only the last text of a line stays."""
    lines = []
    for line in text.split("\n"):
        last = next((part for part in reversed(re.split(r"[\r\x08]+", line)) if part), "")
        shown = _visible(last.replace("\t", "    ")[: limit * 8 + 1024]).rstrip()
        lines.append(shown if len(shown) <= limit else shown[: limit - 1] + "…")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def newest_lines(before: tuple[str, ...], text: str) -> tuple[str, ...]:
    """The newest lines to keep of a log and the ``text`` after it."""
    new = (line[:LOG_LINE_LENGTH] for line in text.splitlines()[-LOG_LINES_KEPT:])
    lines = (*before, *new)[-LOG_LINES_KEPT:]
    room = LOG_LENGTH
    for kept, line in enumerate(reversed(lines)):
        room -= len(line)
        if room < 0:
            return lines[len(lines) - kept :]
    return lines


def _visible(text: str) -> str:
    # Fast path: nearly all text is like this, and screens ask for it again and again.
    if text.isascii() and text.isprintable():
        return text
    text = _ESCAPE.sub("", text)
    return "".join(
        " " if char in "\n\r\t\v\f\x85\u2028\u2029" else char
        for char in text
        if char in "\n\r\t\v\f\x85\u2028\u2029" or unicodedata.category(char) not in _DROPPED
    )


def fit_name(name: str) -> str:
    """``name`` fit for another's screen: no line breaks, no characters that hide or reorder text."""
    visible = "".join(" " if _is_space(sign) else sign for sign in name if not _hides(sign))
    return " ".join(visible.split())[:MAX_NAME].strip() or "laptop"


def _is_space(sign: str) -> bool:
    return sign.isspace() or unicodedata.category(sign) in ("Zs", "Zl", "Zp")


def _hides(sign: str) -> bool:
    return unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Co") and not sign.isspace()


def joined(reasons: Iterable[str]) -> str:
    """Several reasons as one part of a sentence, without repetitions."""
    return "; ".join(dict.fromkeys(reason for reason in reasons if reason))


def listed(names: Iterable[str]) -> str:
    """``A``, ``A and B``, ``A, B and C``."""
    words = list(names)
    return " and ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])} and {words[-1]}"
