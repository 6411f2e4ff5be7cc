"""Length limits of messages between processes and laptops: longer ones are rejected. Pure.

``tests/core/test_bounds.py`` checks everything that is decoded anywhere. Prose that may legitimately be
longer is cut where it is made (``fit``); anything else is refused there with a sentence.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import force_setattr

NAME, WORDS, LOG, DETAIL = 256, 4_000, 20_000, 100_000
"""Characters: of a name, of a few sentences, of lines of output in one message, of a traceback."""
FEW, MOST_LOGS, MANY, MOST_FILES = 256, 2_000, 20_000, 100_000
"""Members, tasks and the like; metrics of a script; paths and arguments; files of a project."""

T = TypeVar("T")
K = TypeVar("K")

Word = Annotated[str, Meta(max_length=100)]
"""A mark, a kind, a version, a digest."""
Name = Annotated[str, Meta(max_length=NAME)]
"""A laptop, a task, a host, an address."""
FilePath = Annotated[str, Meta(max_length=4_096)]
Words = Annotated[str, Meta(max_length=WORDS)]
LogText = Annotated[str, Meta(max_length=LOG)]
Detail = Annotated[str, Meta(max_length=DETAIL)]
Argument = Annotated[str, Meta(max_length=32_768)]
Key = Annotated[bytes, Meta(max_length=4_096)]
"""A certificate, a private key, a random number."""
Piece = Annotated[bytes, Meta(max_length=1 << 20)]
"""Bytes of a file."""
Variable = Annotated[bytes, Meta(max_length=1 << 17)]
"""``NAME=value`` of an environment, at most as long as Linux accepts (execve(2))."""

Few = Annotated[tuple[T, ...], Meta(max_length=FEW)]
Some = Annotated[tuple[T, ...], Meta(max_length=1_000)]
Many = Annotated[tuple[T, ...], Meta(max_length=MANY)]
Files = Annotated[tuple[T, ...], Meta(max_length=MOST_FILES)]
FewBy = Annotated[dict[K, T], Meta(max_length=FEW)]
ManyBy = Annotated[dict[K, T], Meta(max_length=MANY)]
MetEvery = Annotated[int, Meta(ge=0, le=10**6)]
"""Steps between two meetings of a run's members; 0: they meet in every step."""
SentBits = Annotated[int, Meta(ge=0, le=64)]
"""Bits a number in which gradients are sent, fewer than they have; 0: in all."""
Logs = Annotated[dict[Name, float], Meta(max_length=MOST_LOGS)]
"""Metrics by name."""


def fit(struct: msgspec.Struct, **most: int) -> None:
    """Shorten fields of a new struct, each to the given number of characters, by cutting out the middle."""
    for name, characters in most.items():
        text: str = getattr(struct, name)
        if len(text) > characters:
            half = (characters - 1) // 2
            force_setattr(struct, name, f"{text[:half]}…{text[-half:]}")
