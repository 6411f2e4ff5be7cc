"""Text from other laptops and from scripts, made safe to show on a terminal or in a window. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

MAX_NAME = 64

_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\Z)"  # OSC, DCS and the like, up to their end
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]",
    re.S,
)
_DROPPED = ("Cc", "Cf", "Cs", "Co", "Cn")
"""Controls, invisible and direction-turning characters, lone surrogates, private and unassigned ones."""


def plain(text: str, limit: int = 200) -> str:
    """One line of ordinary characters, at most ``limit`` of them; what is longer ends in ``…``."""
    # Cut first: a peer may send megabytes, and nothing beyond a few escapes per character is ever shown.
    line = " ".join(_visible(text[: limit * 8 + 1024]).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def plain_lines(text: str, limit: int = 500) -> list[str]:
    """Lines as a terminal leaves them: of one written over by ``\\r`` or backspaces the last words stay."""
    lines = []
    for line in text.split("\n"):
        last = next((part for part in reversed(re.split(r"[\r\x08]+", line)) if part), "")
        shown = _visible(last.replace("\t", "    ")[: limit * 8 + 1024]).rstrip()
        lines.append(shown if len(shown) <= limit else shown[: limit - 1] + "…")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def _visible(text: str) -> str:
    # Nearly all words are of this kind, and screens ask for them again and again.
    if text.isascii() and text.isprintable():
        return text
    text = _ESCAPE.sub("", text)
    return "".join(
        " " if char in "\n\r\t\v\f\x85\u2028\u2029" else char
        for char in text
        if char in "\n\r\t\v\f\x85\u2028\u2029" or unicodedata.category(char) not in _DROPPED
    )


def fit_name(name: str) -> str:
    """``name`` as it may stand on another's screen: no line breaks, no characters that hide or turn text."""
    visible = "".join(" " if _is_space(sign) else sign for sign in name if not _hides(sign))
    return " ".join(visible.split())[:MAX_NAME].strip() or "laptop"


def _is_space(sign: str) -> bool:
    return sign.isspace() or unicodedata.category(sign) in ("Zs", "Zl", "Zp")


def _hides(sign: str) -> bool:
    return unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Co") and not sign.isspace()


def joined(reasons: Iterable[str]) -> str:
    """Several reasons as one part of a sentence, each once."""
    return "; ".join(dict.fromkeys(reason for reason in reasons if reason))
