"""Files outside the project that a run's script reads, such as a folder of photographs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from core.vocabulary.access import Grant
from core.vocabulary.bounds import MOST_FILES, FilePath, Word
from core.vocabulary.errors import TandemError
from core.vocabulary.manifest import LARGEST, Listing
from core.vocabulary.paths import why_unsafe
from core.vocabulary.text import plain

MOST = 8
"""Per run, and per laptop."""
_KERAS, _DOWNLOADS = ".keras/", ".keras/datasets/"
_NO_CODE = (
    *(".json", ".csv", ".tsv", ".txt", ".md", ".xml", ".tfrecord"),
    *(".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff"),
    *(".wav", ".flac", ".ogg", ".mp3", ".mp4"),
)
_NAME = re.compile(r"[\w.-]{1,64}")
_DIGEST = re.compile(r"[0-9a-f]{64}")

Folders = Annotated[dict[Word, FilePath], Meta(max_length=MOST)]
"""Data folders of one laptop, by name. Laptops may have the same data in different places."""


class Data(msgspec.Struct, frozen=True, kw_only=True):
    """A folder with everything in it, or one file."""

    name: Word
    path: FilePath
    """Absolute, on the laptop that began the run: the script's own text may name it."""
    below_home: FilePath = ""
    """The same path, relative to the home of that laptop's user; ``""``: it is elsewhere."""
    place: FilePath = ""
    """Its place on the starter's laptop, if another laptop began the run."""
    is_file: bool = False
    has_code: bool = False
    """A folder with a file that ``may_carry_code``."""
    listing: Listing
    """Its files."""
    files: int
    total_bytes: int

    @property
    def asked(self) -> str:
        """The path at which a walled script on another laptop sees it."""
        return f"~/{self.below_home}" if self.below_home else self.path

    @property
    def kept_by_keras(self) -> str:
        """Its path below Keras' folder; ``""``: Keras did not download it.

        Security invariant: walls leave a member's own copy open, without a question.
        """
        return self.below_home.removeprefix(_KERAS) if self.below_home.startswith(_DOWNLOADS) else ""

    @property
    def may_carry_code(self) -> bool:
        """Whether scripts usually load such a file, or one in the folder, in a way that can run code in it.
        Tandem never loads data."""
        return self.has_code or (self.is_file and may_carry_code([self.path]))

    @property
    def spellings(self) -> tuple[str, ...]:
        """Ways in which the script's text may name it."""
        return tuple(dict.fromkeys((self.path, self.asked)))

    def grant(self, place: str) -> Grant:
        """Read access, if it lies at ``place``."""
        return Grant(asked=self.asked, path=place)


def may_carry_code(paths: Iterable[str]) -> bool:
    """Whether any of these files may contain code: all but known kinds of plain data and media."""
    return any(not path.lower().endswith(_NO_CODE) for path in paths)


Datas = Annotated[tuple[Data, ...], Meta(max_length=MOST)]


def is_sound(data: Data) -> bool:
    """Whether a description from a peer is safe to use. Its files are checked once their list has arrived."""
    return (
        _NAME.fullmatch(data.name) is not None
        and _DIGEST.fullmatch(data.listing.digest) is not None  # it names a folder
        and _is_absolute(data.path)
        and (not data.place or _is_absolute(data.place))
        and (not data.below_home or why_unsafe(data.below_home) is None)
        and 0 < data.files <= (1 if data.is_file else MOST_FILES)
        and 0 <= data.total_bytes <= LARGEST
    )


def _is_absolute(path: str) -> bool:
    return path.isprintable() and re.match(r"/|[A-Za-z]:[/\\]", path) is not None


def check_folders(folders: Mapping[str, str]) -> None:
    """Raises ``TandemError`` for invalid names or too many data folders."""
    for name in folders:
        if not _NAME.fullmatch(name):
            raise bad_folder(name)
    if len(folders) > MOST:
        raise bad_folder(", ".join(folders))


def data_gone(data: Data) -> TandemError:
    return TandemError(
        code="data-gone",
        what=f"The data {data.name} of this run is no longer here, or has changed.",
        fix=f"Name it again: --data {data.name}=PATH. Or resume the run on the laptop that started it.",
    )


def bad_folder(words: str) -> TandemError:
    return TandemError(
        code="bad-option",
        what=f"{plain(words, 120)!r} is not a data folder.",
        fix=f"Write it as NAME=PATH, such as photos=~/Pictures/photos, with a name of letters, digits, dots "
        f"and dashes, and a path of this laptop; {MOST} at most.",
    )
