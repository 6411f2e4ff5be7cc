"""The form of a checkpoint's trees: checked before a fit resumes, as they may come from another laptop."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from core.trainer.exact.resume import plain
from core.trainer.exact.resume.plain import Tree
from core.vocabulary.bounds import MANY, MOST_FILES, FewBy, Logs, ManyBy, Name, Word

_Count = Annotated[int, msgspec.Meta(ge=0, le=10**12)]
_Passes = Annotated[int, msgspec.Meta(ge=0, le=10**6)]
"""How often data is read before training continues."""
_CallbackState = tuple[Name, ManyBy[Tree, Tree]]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A fit that had ended."""

    model: Annotated[list[Tree], msgspec.Meta(max_length=MOST_FILES)]
    """Arrays, compared with the model's variables before these are set."""
    history: _CallbackState
    callbacks: Annotated[list[_CallbackState], msgspec.Meta(max_length=MANY)]
    random: FewBy[Word, Tree]
    """See ``randomness``, which checks it."""
    step: _Count
    epochs: _Count = 0


class UnderWay(Outcome, frozen=True, kw_only=True):
    """A fit that was interrupted. ``random``: several states, by when they were captured."""

    random: FewBy[Word, FewBy[Word, Tree] | None]
    epoch: _Count
    batch: _Count
    passes: _Passes
    validations: _Passes
    logs: Logs


for _kind in (Outcome, UnderWay):
    # Resolves annotations here: once a script runs, this module cannot be found by its name.
    msgspec.msgpack.Decoder(_kind)


def check(tree: Any, kind: type[Outcome]) -> None:
    """Raises TandemError if the tree is not of this kind."""
    try:
        msgspec.convert(tree, kind)
    except msgspec.ValidationError as error:
        raise plain.broken(str(error)) from error
