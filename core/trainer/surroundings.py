"""A script's environment: made the same on all members where it would change what they train on.

The order of strings in a set follows PYTHONHASHSEED, which every trainer starts with
(``core.supervisor.spawn``); it is only checked here, as no process can change its own. Main thread, before
the script's first line.
"""

from __future__ import annotations

import builtins
import glob
import inspect
import io
import linecache
import locale
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
import tensorflow as tf
from tensorflow.python.lib.io import file_io

from core.trainer.exact.members.collectives import Collectives
from core.vocabulary.errors import TandemError

_MOMENTS_S = (951_782_400, 1_709_200_800, 1_720_000_800, 1_735_689_600)
"""Moments in summers and winters: a time zone's offsets at these distinguish it from others."""
_PROBE = "the order of a set"
_LISTERS = {__name__, "glob", "os", "pathlib", "pathlib._abc", "pathlib._local", file_io.__name__}
"""Modules between a script's line and the list of files that it asks for."""

_NAME = r"[A-Za-z][A-Za-z0-9-]{0,31}(?:_[A-Za-z0-9]{1,31})?(?:\.[A-Za-z0-9_-]{1,31})?(?:@[A-Za-z0-9=]{1,31})?"
"""A locale's name. Without slashes, which could make it a path."""
_OFFSET = r"[+-]?[0-9]{1,3}(?::[0-9]{2}){0,2}"
_SHORT = r"(?:[A-Za-z]{3,10}|<[A-Za-z0-9+-]{3,10}>)"
_DAY = rf",(?:M[0-9]{{1,2}}\.[1-5]\.[0-6]|J?[0-9]{{1,3}})(?:/{_OFFSET})?"
_POSIX_ZONE = rf"{_SHORT}{_OFFSET}(?:{_SHORT}(?:{_OFFSET})?(?:{_DAY}{_DAY})?)?"
"""POSIX.1-2024, 8.3, TZ."""
_IANA_ZONE = r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9][A-Za-z0-9_+-]*){0,3}"

_Category = Literal[
    "LANG", "LANGUAGE", "LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION",
    "LC_MEASUREMENT", "LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE",
    "LC_TIME",
]  # fmt: skip
_CATEGORIES: tuple[_Category, ...] = get_args(_Category)
"""locale(7)."""
_Locale = Annotated[str, msgspec.Meta(pattern=rf"\A(?:{_NAME}(?::{_NAME}){{0,9}})?\Z", max_length=200)]
_Zone = Annotated[str, msgspec.Meta(pattern=rf"\A(?:{_IANA_ZONE}|{_POSIX_ZONE})?\Z", max_length=100)]
_OffsetS = Annotated[int, msgspec.Meta(ge=-200_000, le=200_000)]


class Surroundings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One member's surroundings.

    Security invariant: some of it becomes environment variables on the other members, so each is one of a
    fixed set, with a value that names no file.
    """

    order: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
    """The hash of a fixed text."""
    python: Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,3}(?:\.[0-9]{1,3}){2}\Z", max_length=11)]
    zone: _Zone
    """As TZ names it; "" if it has no such name."""
    offsets: Annotated[tuple[_OffsetS, ...], msgspec.Meta(max_length=10)]
    """Seconds east of UTC at ``_MOMENTS_S``."""
    locale: dict[_Category, _Locale]
    encoding: Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9._:-]+\Z", max_length=40)]


# Created here: a script may hide the modules in which type names are looked up.
_SURROUNDINGS = msgspec.msgpack.Decoder(Surroundings)
_LOCALE: msgspec.msgpack.Decoder[str] = msgspec.msgpack.Decoder(_Locale)
_ZONE: msgspec.msgpack.Decoder[str] = msgspec.msgpack.Decoder(_Zone)


def agree(collectives: Collectives, say: Callable[[str], None]) -> None:
    """Makes the chief's time zone and locale every member's. All members must call it.

    A member reports differences that cannot be made equal. Raises TandemError if sets of strings are ordered
    differently, or if a member sends what Tandem never sends.
    """
    gathered = collectives.gather_objects(_own(), _SURROUNDINGS, "to begin")
    chief = gathered[0]
    if any(each.order != chief.order for each in gathered):
        raise TandemError(
            code="order-differs",
            what="Sets of strings are ordered differently on one member than on the chief. Python here is "
            f"{gathered[collectives.rank].python}, on the chief {chief.python}.",
            fix="Install the same Python and the same Tandem on all laptops.",
        )
    if collectives.is_chief:
        return
    _set_locale(chief.locale)
    _set_zone(chief.zone)
    own = _own()
    if own.offsets != chief.offsets:
        say(
            f"Local times differ: the chief's clock is in {chief.zone or 'a zone without a name'}, this "
            f"laptop's in {own.zone or 'another one'}. A script that uses local times trains on "
            "different numbers here: set the same time zone on both, or use UTC in the script."
        )
    if own.encoding != chief.encoding:
        say(
            f"Text files opened without an encoding are read as {own.encoding} here, but as {chief.encoding} "
            "on the chief. Write open(…, encoding='utf-8')."
        )


def sort_folders(folder: Path, say: Callable[[str], None]) -> None:
    """Makes Python and TensorFlow list folders by name: the order on disk differs between laptops.

    Reports once if the script's code, in ``folder``, relies on the disk's own order.
    """
    reported: list[str] = []

    def in_order(names: list[Any], ordered: list[Any]) -> list[Any]:
        if names != ordered and not reported and (line := _line_that_lists(folder)):
            reported.append(line)
            say(
                f"{line} lists files. Tandem sorts them by name on every laptop; without Tandem the order, "
                "and so the result, may differ. Write sorted(…) around the list."
            )
        return ordered

    os.listdir = _sorted_names(os.listdir, in_order)
    os.scandir = _sorted_entries(os.scandir, in_order)
    for globber in ("_Globber", "_StringGlobber"):  # from Python 3.13 on, they keep their own scandir
        if hasattr(getattr(glob, globber, None), "scandir"):
            getattr(glob, globber).scandir = staticmethod(os.scandir)
    for name in ("list_directory_v2", "get_matching_files_v2"):
        setattr(file_io, name, _sorted_names(getattr(file_io, name), in_order))
    tf.io.gfile.listdir = file_io.list_directory_v2
    tf.io.gfile.glob = file_io.get_matching_files_v2


def watch_writes(script: Path, folders: Sequence[Path], say: Callable[[str], None]) -> None:
    """Makes Python's ``open`` report each path that the script writes outside its own folders, once.

    Leaves out paths in its source, which were reported before the run, and the user's hidden folders: caches.
    """
    text, reported = script.read_text("utf-8", errors="replace"), set[str]()
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
            if line and not path.startswith((hidden, "/dev/", "/proc/")) and path not in reported:
                reported.add(path)
                if os.fsdecode(file) not in text and not any(Path(path).is_relative_to(each) for each in own):
                    say(f"{line} writes {path}, which lies outside the project: every laptop writes its own.")
        return opened(file, mode, *args, **kwargs)

    watched.__doc__ = opened.__doc__
    builtins.open = io.open = watched


def _line_in(folder: Path) -> str:
    """The line of the script, or of a module beside it, that made the call; "" if none did."""
    frame = inspect.currentframe()
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_absolute() and path.is_relative_to(folder):
            return f"{path.name}, line {frame.f_lineno},"
        frame = frame.f_back
    return ""


def _own() -> Surroundings:
    return Surroundings(
        order=hash(_PROBE),
        python=".".join(map(str, sys.version_info[:3])),
        zone=_zone(),
        offsets=tuple(time.localtime(moment_s).tm_gmtoff for moment_s in _MOMENTS_S),
        locale={name: os.environ[name] for name in _CATEGORIES if _is_valid(_LOCALE, os.environ.get(name))},
        encoding=locale.getpreferredencoding(False),
    )


def _is_valid(decoder: msgspec.msgpack.Decoder[str], text: str | None) -> bool:
    """Whether the other members would accept this laptop's value; otherwise it is not sent."""
    try:
        return bool(decoder.decode(msgspec.msgpack.encode(text)))
    except (msgspec.ValidationError, UnicodeEncodeError):
        return False


def _zone() -> str:
    """The time zone as TZ names it; "" if it has no such name."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if named and not named.startswith("/"):
        return named if _is_valid(_ZONE, named) else ""
    _, found, name = str(Path(named or "/etc/localtime").resolve()).partition("zoneinfo/")
    return name if found and _is_valid(_ZONE, name) else ""


def _set_zone(name: str) -> None:
    if name and name != _zone() and hasattr(time, "tzset"):
        os.environ["TZ"] = name
        time.tzset()


def _set_locale(chief: Mapping[_Category, str]) -> None:
    """For a script that requests the user's locale with ``locale.setlocale(locale.LC_ALL, "")``."""
    for name in _CATEGORIES:
        os.environ.pop(name, None)
    for category, value in chief.items():
        os.environ[category] = value


def _line_that_lists(folder: Path) -> str:
    """The line of code in ``folder`` that asked for a list of files, and does not sort it; "" if none did."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") in _LISTERS:
        frame = frame.f_back
    if frame is None or not Path(path := frame.f_code.co_filename).is_relative_to(folder):
        return ""
    if re.search(r"\b(?:sorted|sort|len|set|any|max|min)\(", linecache.getline(path, frame.f_lineno)):
        return ""
    return f"{Path(path).name}, line {frame.f_lineno},"


def _sorted_names(listing: Callable[..., Any], in_order: Callable[..., list[Any]]) -> Callable[..., Any]:
    def names(*args: Any, **kwargs: Any) -> list[Any]:
        found = listing(*args, **kwargs)
        return in_order(found, sorted(found))

    names.__doc__ = listing.__doc__
    return names


class _Entries:
    """Stands in for the result of ``os.scandir``."""

    def __init__(self, entries: Any, in_order: Callable[..., list[Any]]) -> None:
        with entries:
            found = list(entries)
        self._left = iter(in_order(found, sorted(found, key=attrgetter("name"))))

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


def _sorted_entries(scandir: Callable[..., Any], in_order: Callable[..., list[Any]]) -> Callable[..., Any]:
    def entries(*args: Any, **kwargs: Any) -> _Entries:
        return _Entries(scandir(*args, **kwargs), in_order)

    entries.__doc__ = scandir.__doc__
    return entries
