"""The models that a trainer kept at the end of its run, on their way among the outputs. Blocks: use a thread.

The chief's trainer saves them in ``kept`` in the run's folder on its laptop, not beside the script: what lies
there is the user's. Among the outputs they have a folder of their own.
"""

from __future__ import annotations

import os
import re
import shutil
from itertools import count
from pathlib import Path

from core.vocabulary.run_folder import TRAINED

_NAME = re.compile(r"model(-\d+)?\.(keras|weights\.h5)")
_PATH = re.compile(rf"{TRAINED}(-\d+)?/{_NAME.pattern}")


def is_model(path: str) -> bool:
    """Whether an output is a model that Tandem kept: ``trained/model.keras``."""
    return _PATH.fullmatch(path) is not None


def bytes_kept(kept: Path) -> int:
    return sum(path.stat().st_size for path in _models(kept))


def bring(kept: Path, place: Path) -> tuple[str, ...]:
    """Move the models below ``place``, on the same disk; their paths there. Nothing is overwritten."""
    models = _models(kept)
    if not models:
        shutil.rmtree(kept, ignore_errors=True)
        return ()
    names = (f"{TRAINED}-{number}" if number > 1 else TRAINED for number in count(1))
    name = next(name for name in names if not os.path.lexists(place / name))
    (place / name).mkdir(mode=0o700, parents=True)
    for model in models:
        model.rename(place / name / model.name)
    shutil.rmtree(kept, ignore_errors=True)  # with what a killed trainer left half done
    return tuple(f"{name}/{model.name}" for model in models)


def _models(kept: Path) -> list[Path]:
    if not kept.is_dir():
        return []
    return sorted(path for path in kept.iterdir() if _NAME.fullmatch(path.name) and path.is_file())
