"""Decides which relative paths may travel between laptops. Pure; check every path from a peer here before
use."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

PATH_BYTES = 1024
NAME_BYTES = 255
DEPTH = 40

_NOT_ON_WINDOWS = frozenset('<>:"|?*')
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789¹²³"]
)
_NEVER = frozenset([".git", "git~1"])
"""A repository's folder can name programs that git or a prompt then starts."""
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def why_unsafe(path: str) -> str | None:
    """None where ``path`` is a plain relative POSIX path on every platform; else the reason, as a clause.

    The rules cover tricks known from archives and git: parent folders, drive letters, alternate streams,
    device names, names that a file system folds into another.
    """
    try:
        length = len(path.encode("utf-8"))
    except UnicodeEncodeError:
        return "its name is not valid Unicode"
    if not path:
        return "its name is empty"
    if length > PATH_BYTES:
        return f"its path is longer than {PATH_BYTES} bytes"
    if path.startswith("/"):
        return "its path is absolute"
    if "\\" in path:
        return "its name holds a backslash"
    names = path.split("/")
    if len(names) > DEPTH:
        return f"it lies more than {DEPTH} folders deep"
    for name in names:
        if reason := _why_unsafe_name(name):
            return reason
    return None


def _why_unsafe_name(name: str) -> str | None:
    if name in ("", ".", ".."):
        return "its path leaves the folder or is not in plain form"
    if len(name.encode("utf-8")) > NAME_BYTES:
        return f"its name is longer than {NAME_BYTES} bytes"
    if any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in name):
        return "its name holds a control character"
    if not _BIDI.isdisjoint(name):
        return "its name holds a character that turns the text's direction"
    if not _NOT_ON_WINDOWS.isdisjoint(name):
        return 'its name holds one of < > : " | ? *, which not every system can store'
    if name[-1] in ". " or name[0] == " ":
        return "its name begins with a space, or ends in a space or a dot"
    folded = folded_path(name)
    if not folded:
        return "its name is invisible"
    if folded in _NEVER:
        return "it is inside a git repository's own folder"
    if folded.partition(".")[0].rstrip() in _RESERVED:
        return "its name is a device's name on Windows"
    return None


def folded_path(path: str) -> str:
    """Two paths with the same fold may be one file somewhere (Windows, macOS).

    Canonical caseless matching (Unicode 3.13, D145), less the characters that HFS+ ignores.
    """
    # Name by name ("/" combines with nothing): folders repeat, and folding is slow.
    return path.lower() if path.isascii() else "/".join(map(_folded_name, path.split("/")))


@lru_cache(maxsize=8192)
def _folded_name(name: str) -> str:
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())
    folded = unicodedata.normalize("NFC", folded)
    return "".join(char for char in folded if unicodedata.category(char) != "Cf")


class Names:
    """Paths for one folder: no two may be the same file on any platform, and none may be both file and
    folder."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._folders: dict[str, str] = {}

    def take(self, path: str) -> str | None:
        """Adds ``path`` and returns None, or returns the path that it collides with."""
        folded = folded_path(path)
        if other := self._files.get(folded) or self._folders.get(folded):
            return other
        folders: dict[str, str] = {}
        end, folded_end = path.rfind("/"), folded.rfind("/")
        while end > 0:
            folder, key = path[:end], folded[:folded_end]
            if key in self._files:
                return self._files[key]
            if (other := self._folders.get(key, folder)) != folder:
                return other
            if key in self._folders:
                break  # and so is every folder above it
            folders[key] = folder
            end, folded_end = path.rfind("/", 0, end), folded.rfind("/", 0, folded_end)
        self._files[folded] = path
        self._folders |= folders
        return None


def shown(path: str, limit: int = 80) -> str:
    """A path for a sentence: cannot move a terminal's cursor, and fits a line."""
    text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in path)
    return text if len(text) <= limit else f"{text[: limit // 2 - 1]}…{text[-limit // 2 :]}"
