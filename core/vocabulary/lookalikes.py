"""Detects deceptive names: letters of several alphabets in one word, or lookalikes of a known name. Pure.

After Unicode's UTS 39 (skeletons, mixed scripts), with the letters that keyboards and fonts have.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_TOGETHER = frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"})
"""Scripts that are legitimately mixed in one word."""
_ALIKE = str.maketrans(
    {
        **dict(zip("авеѕіјкмнорстухһѵԁԛԝӏ", "abesljkmhopctyxhvdqwl", strict=True)),
        **dict(zip("αβεηικνορτυχγϲј", "abenlkvoptuxycj", strict=True)),
        **dict(zip("օսհոցքզ", "ouhngpq", strict=True)),
        **dict(zip("01i|ıɑɡ", "ollllag", strict=True)),
    }
)
"""Lower-case letters of other alphabets, and digits, mapped to the Latin letter that they resemble."""


def skeleton(name: str) -> str:
    """Equal for names that look the same to a reader."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    seen = (sign for sign in folded if unicodedata.category(sign) not in ("Cc", "Cf", "Mn"))
    return " ".join("".join(seen).translate(_ALIKE).split())


def alphabets(name: str) -> tuple[str, ...]:
    """The alphabets mixed within one word, as ``("Cyrillic", "Latin")``; ``()``: none."""
    for word in name.split():
        signs = unicodedata.normalize("NFKC", word)
        # A modifier, such as an apostrophe or a long vowel's mark, belongs to the alphabet around it.
        letters = [sign for sign in signs if sign.isalpha() and unicodedata.category(sign) != "Lm"]
        found = {unicodedata.name(letter, "?").split()[0] for letter in letters}
        if len(found) > 1 and not found <= _TOGETHER:
            return tuple(sorted(each.capitalize() for each in found))
    return ()


def caution(name: str, others: Iterable[str]) -> str:
    """A warning where ``name`` is deceptive; ``others``: names of other known devices."""
    like = next((other for other in others if skeleton(other) == skeleton(name)), None)
    if like is not None:
        return f"Careful: {name} looks like the name of another laptop here, {like}."
    if mixed := alphabets(name):
        return f"Careful: the name {name} mixes letters of different alphabets: {' and '.join(mixed)}."
    return ""
