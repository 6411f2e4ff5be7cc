"""Combinations of several values for a script's arguments, as given on the command line. Pure."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from math import prod

from core.sweep import problems
from core.vocabulary.errors import TandemError
from core.vocabulary.sweep import MOST_SETS

_COMMA = re.compile(r"(?<!\\),")
_OPTION = re.compile(r"-(?![.\d])")
"""The beginning of an option; ``-1,0,1`` are values."""


def argument_sets(
    words: Sequence[str], at_random: int | None = None, *, draw: int | None = None
) -> tuple[tuple[str, ...], ...]:
    r"""Every combination of values: ``--lr 0.1,0.01`` has two, ``\,`` is a comma within one.

    ``("--lr", "0.1,0.01", "--layers", "2,4")`` are four sets, the first of which is
    ``("--lr", "0.1", "--layers", "2")``. The last argument varies fastest. ``at_random``: that many
    combinations, drawn without replacement; the same ones for the same ``draw``. Raises ``TandemError`` for
    an empty value, and for more than ``MOST_SETS`` sets.
    """
    choices = [_values(word) for word in words]
    total = prod(map(len, choices))
    drawn = random.Random(draw)
    wanted = total if at_random is None else min(at_random, total)
    if not 0 < wanted <= MOST_SETS:
        raise TandemError.of(problems.too_many(wanted))
    numbers = set(range(total)) if wanted == total else set[int]()
    while len(numbers) < wanted:  # a grid may be larger than any ``range`` that can be sampled
        numbers.add(drawn.randrange(total))
    return tuple(_combination(choices, number) for number in sorted(numbers))


def combinations(words: Sequence[str]) -> int:
    """The number of combinations. Raises ``TandemError`` for an empty value."""
    return prod(len(_values(word)) for word in words)


def _values(word: str) -> list[str]:
    option, equals, rest = word.partition("=") if _OPTION.match(word) else ("", "", word)
    values = list(dict.fromkeys(_COMMA.split(rest)))
    if len(values) > 1 and "" in values:
        raise TandemError.of(problems.empty_value(word))
    return [option + equals + value.replace("\\,", ",") for value in values]


def _combination(choices: Sequence[Sequence[str]], number: int) -> tuple[str, ...]:
    """The combination with this number, counted in mixed radix: a huge grid is never built. ``number`` counts
    from 0."""
    chosen = list[str]()
    for values in reversed(choices):
        number, at = divmod(number, len(values))
        chosen.append(values[at])
    return tuple(reversed(chosen))
