"""What a script finds around it: made alike on all members where it would change what they train on.

The order of strings in a set follows PYTHONHASHSEED, which every trainer starts with
(``core.supervisor.spawn``); here it is only checked, as no process can change its own. Main thread, before
the script's first line.
"""

from __future__ import annotations

import builtins
import glob
import inspect
import io
import json
import locale
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol

import tensorflow as tf
from tensorflow.python.lib.io import file_io

from core.vocabulary.errors import TandemError

_MOMENTS_S = (951_782_400, 1_709_200_800, 1_720_000_800, 1_735_689_600)
"""In summers and winters: what a time zone makes of them tells it from others."""
_LOCALE = ("LANG", "LANGUAGE")
_PROBE = "the order of a set"


class Meets(Protocol):
    """What is needed of ``Collectives``."""

    rank: int

    def gather_bytes(self, data: bytes, what: str = ...) -> list[bytes]: ...


def agree(collectives: Meets, say: Callable[[str], None]) -> None:
    """The chief's time zone and locale become every member's. Called by all of them.

    What cannot be made alike is said, by the member that differs. Raises TandemError where strings have
    another order in sets.
    """
    told = [json.loads(data) for data in collectives.gather_bytes(json.dumps(_own()).encode(), "to begin")]
    chief = told[0]
    unlike = [rank for rank, each in enumerate(told) if each["order"] != chief["order"]]
    if unlike:
        raise TandemError(
            code="order-differs",
            what="Sets of strings have another order on one member than on the chief: "
            f"here is Python {told[collectives.rank]['python']}, there {chief['python']}.",
            fix="Install the same Python and the same Tandem on all laptops.",
        )
    if collectives.rank == 0:
        return
    _take_locale(chief["locale"])
    _take_zone(chief["zone"])
    own = _own()
    if own["offsets"] != chief["offsets"]:
        say(
            f"Local times differ: the chief's clock is in {chief['zone'] or 'a zone without a name'}, this "
            f"laptop's in {own['zone'] or 'another one'}. A script that takes hours from times trains "
            "on other numbers here: set the same time zone on both, or use UTC in the script."
        )
    if own["encoding"] != chief["encoding"]:
        say(
            f"Text files are read as {own['encoding']} here, and as {chief['encoding']} on the chief, where "
            "the script names no encoding. Write open(…, encoding='utf-8')."
        )


def sort_folders() -> None:
    """Has Python and TensorFlow list folders by name: a disk's own order is another on each laptop."""
    os.listdir = _sorted_names(os.listdir)
    os.scandir = _sorted_entries(os.scandir)
    for globber in ("_Globber", "_StringGlobber"):  # from Python 3.13 on, they keep a scandir of their own
        if hasattr(getattr(glob, globber, None), "scandir"):
            getattr(glob, globber).scandir = staticmethod(os.scandir)
    for name in ("list_directory_v2", "get_matching_files_v2"):
        setattr(file_io, name, _sorted_names(getattr(file_io, name)))
    tf.io.gfile.listdir = file_io.list_directory_v2
    tf.io.gfile.glob = file_io.get_matching_files_v2


def watch_writes(script: Path, folders: Sequence[Path], say: Callable[[str], None]) -> None:
    """Has Python's ``open`` say once what the script writes elsewhere than in these folders of its own.

    Paths that stand in its text were named before the run began, and hidden folders of the user are caches.
    """
    text, told = script.read_text("utf-8", errors="replace"), set[str]()
    own = [
        *(Path(os.path.realpath(folder)) for folder in folders),
        Path(os.path.realpath(tempfile.gettempdir())),
    ]
    hidden = f"{Path.home()}{os.sep}."
    opened = builtins.open

    def watched(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if mode != "r" and not isinstance(file, int) and set(mode) & set("wax+"):
            path = os.path.realpath(os.fsdecode(file))
            line = _line_in(script.parent)
            if line and not path.startswith((hidden, "/dev/", "/proc/")) and path not in told:
                told.add(path)
                if os.fsdecode(file) not in text and not any(Path(path).is_relative_to(each) for each in own):
                    say(f"{line} writes {path}, which lies outside the project: every laptop writes its own.")
        return opened(file, mode, *args, **kwargs)

    watched.__doc__ = opened.__doc__
    builtins.open = io.open = watched


def _line_in(folder: Path) -> str:
    """The line of the script, or of a module beside it, that called; "" where none did."""
    frame = inspect.currentframe()
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_absolute() and path.is_relative_to(folder):
            return f"{path.name}, line {frame.f_lineno},"
        frame = frame.f_back
    return ""


def _own() -> dict[str, Any]:
    return {
        "order": hash(_PROBE),
        "python": ".".join(map(str, sys.version_info[:3])),
        "zone": _zone(),
        "offsets": [time.localtime(moment_s).tm_gmtoff for moment_s in _MOMENTS_S],
        "locale": {name: value for name, value in os.environ.items() if _of_locale(name)},
        "encoding": locale.getpreferredencoding(False),
    }


def _of_locale(name: str) -> bool:
    return name in _LOCALE or name.startswith("LC_")


def _zone() -> str:
    """As TZ names it; "" where only the system knows."""
    if named := os.environ.get("TZ", "").removeprefix(":"):
        return named
    _, found, name = str(Path("/etc/localtime").resolve()).partition("zoneinfo/")
    return name if found else ""


def _take_zone(name: str) -> None:
    if name and name != _zone() and hasattr(time, "tzset"):
        os.environ["TZ"] = name
        time.tzset()


def _take_locale(chief: dict[str, str]) -> None:
    """For a script that asks for the user's own by ``locale.setlocale(locale.LC_ALL, "")``."""
    for name in [name for name in os.environ if _of_locale(name)]:
        del os.environ[name]
    os.environ.update(chief)


def _sorted_names(listing: Callable[..., Any]) -> Callable[..., Any]:
    def names(*args: Any, **kwargs: Any) -> list[Any]:
        return sorted(listing(*args, **kwargs))

    names.__doc__ = listing.__doc__
    return names


class _Entries:
    """What ``os.scandir`` returns."""

    def __init__(self, entries: Any) -> None:
        with entries:
            self._left = iter(sorted(entries, key=attrgetter("name")))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._left)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._left = iter(())


def _sorted_entries(scandir: Callable[..., Any]) -> Callable[..., Any]:
    def entries(*args: Any, **kwargs: Any) -> _Entries:
        return _Entries(scandir(*args, **kwargs))

    entries.__doc__ = scandir.__doc__
    return entries
