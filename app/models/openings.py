"""Files that a script may open on a laptop besides its own folders, as written by a user. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from app.words.device_names import meant, names_of
from core.vocabulary.access import MOST, Access, Accesses
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.state import State
from core.vocabulary.text import plain

FORM = "NAME=PATH"
WRITE = ":write"
HELP = (
    "a file or folder on that laptop that the script may also read there: absolute, or below its "
    "user's home (ben=~/Pictures). PATH:write lets it write, too. Its user is asked"
)


def read_line(text: str, state: State, home: Path) -> dict[DeviceId, tuple[Access, ...]]:
    """Several entries, as on a command line. Raises ``TandemError``."""
    try:
        return read(shlex.split(text), state, home)
    except ValueError as error:
        raise _bad(text) from error


def read(words: Iterable[str], state: State, home: Path) -> dict[DeviceId, tuple[Access, ...]]:
    """``home``: this user's, which a shell may have substituted for ``~``. Raises ``TandemError``."""
    found: dict[DeviceId, tuple[Access, ...]] = {}
    for word in words:
        name, equals, path = word.partition("=")
        write, path = path.endswith(WRITE), path.removesuffix(WRITE).rstrip("/")
        if Path(path).is_relative_to(home) and Path(path) != home:
            path = f"~/{Path(path).relative_to(home)}"
        access = Access(path=path, write=write)
        if not equals or not name.strip() or not access.is_whole:
            raise _bad(word)
        device = meant(state, name)
        try:
            found[device] = msgspec.convert((*found.get(device, ()), access), Accesses)
        except msgspec.ValidationError as error:
            raise _bad(word) from error
    return found


def written(opens: Mapping[DeviceId, Iterable[Access]], state: State) -> str:
    """The same in the user's notation, for laptops that are known here."""
    names = {
        device: name if _means(state, name, device) else short(device)
        for device, name in names_of(state, opens).items()
    }
    return shlex.join(
        f"{names[device]}={each.path}{WRITE if each.write else ''}"
        for device, asked in opens.items()
        if device in state.devices or (state.me is not None and device == state.me.device)
        for each in asked
    )


def _means(state: State, name: str, device: DeviceId) -> bool:
    """Whether ``read`` would find that device by its name."""
    try:
        return "=" not in name and meant(state, name) == device
    except TandemError:
        return False


def _bad(word: str) -> TandemError:
    return TandemError(
        code="bad-option",
        what=f"{plain(word, 120)!r} is not a file on a laptop.",
        fix=f"Write it as {FORM}, with PATH absolute or below its user's home (~/Pictures); {MOST} for each "
        "laptop at most.",
    )
