"""Finds files that a project's texts name: a script may read them through its configuration.

Blocks: use a thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from core.runtime.regular_file import READ_BYTES, NotRegular, open_regular

_TEXTS = re.compile(
    r".*\.(jsonl?|json5|ya?ml|toml|ini|cfg|conf|properties|env|txt|csv|tsv|xml|sh|bat|ps1|md|rst)",
    re.IGNORECASE | re.DOTALL,
)
MOST_COMPARED = 1 << 30
"""Bytes of texts times names: about a second."""
_ASCII_END = re.compile(r"[\0-\x7f]*\Z")


def named_in_texts(
    folder: Path, files: Mapping[str, str], paths: Iterable[str], *, most_compared: int = MOST_COMPARED
) -> set[str]:
    """The ``files`` (path → name) that a text among ``paths`` may name; all of them if a text cannot be read.

    A text among ``files`` counts once it is named itself. Stops reading when every file is found. Non-ASCII
    letters have many encodings, so only the part of a name after them counts.
    """
    left = {path: _ASCII_END.findall(name)[0].lower().encode() for path, name in files.items()}
    waiting = [path for path in paths if _TEXTS.fullmatch(path) and path not in left]
    room = most_compared
    while left and waiting:
        text = folder / waiting.pop()
        names = set(left.values())
        try:
            room -= text.stat().st_size * len(names)
            found = _found(text, names) if room >= 0 else names
        except FileNotFoundError:
            continue
        except (OSError, NotRegular):
            found = names
        met = [path for path, name in left.items() if name in found]
        for path in met:
            del left[path]
        waiting += filter(_TEXTS.fullmatch, met)
    return files.keys() - left.keys()


def _found(text: Path, names: set[bytes]) -> set[bytes]:
    """The names in a text, ignoring case; all of them, where its encoding contains no ASCII."""
    found, before, longest = set[bytes](), b"", max(map(len, names))
    with open_regular(text) as file:
        while data := file.read(READ_BYTES):
            if b"\0" in data:
                return names
            data = before + data.lower()
            found |= {name for name in names - found if name in data}
            before = data[-longest:]
    return found
