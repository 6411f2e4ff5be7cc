"""A folder for the temporary files of each trainer and its script's programs. Blocks: use a thread.

TensorFlow leaves a generated file for every function of a script that it compiles, and scripts leave more: a
day's trials left 445 in the system's folder. This folder is deleted with the trainer, or after a crash when
the next node starts in this home.
"""

from __future__ import annotations

import logging
from pathlib import Path

from core.runtime.removal import remove_tree
from core.vocabulary.run_folder import task_name

_log = logging.getLogger(__name__)


def place_of(folder: Path, run: str, task: str) -> Path:
    """``folder``: the home's. A short name: sockets are made below it, and their paths are limited to 103
    bytes."""
    return folder / f"{run[-8:]}-{task_name(task)}"


def make(place: str) -> None:
    """``""``: there is none. If no folder can be made, the trainer uses the system's."""
    if not place:
        return
    try:
        Path(place).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        _log.warning("temporary files go to the system's folder: %s", error)


def remove(place: str) -> None:
    """Remove it with everything in it. A process that left the trainer's group may still write there: the
    rest goes at the next start."""
    if place:
        remove_tree(Path(place))


def sweep(folder: Path) -> None:
    """Remove leftovers of a crashed node's trainers. Call at a node's start, which has the home to itself."""
    try:
        left = list(folder.iterdir())
    except OSError:
        return  # no trainer ever ran here
    for each in left:
        _log.info("removing temporary files of an earlier run: %s", each.name)
        remove(str(each))
