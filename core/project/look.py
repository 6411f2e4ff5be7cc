"""What a user sees of a project before saying yes: its texts, and what changed since the last yes.

Blocks: use a thread. What is shown comes from another laptop: nothing in it may hide from the reader.
"""

from __future__ import annotations

import difflib
import io
import tokenize
import unicodedata
from collections.abc import Iterable, Mapping

from core.project.notebook import SUFFIX as NOTEBOOK
from core.project.notebook import parse_notebook
from core.project.store import ProjectStore
from core.project.texts import is_text
from core.vocabulary.answers import Change, RequestFile
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import ProjectId
from core.vocabulary.manifest import Manifest, ProjectFile

MOST_READ_BYTES = 512_000
"""Of all texts that are read from the store."""
MOST_COMPARED = 4_000_000
"""Lines of one version times lines of the other, less what begins and ends alike: comparing takes long."""
CONTEXT_LINES = 3
_AS_WRITTEN = {"utf-8", "utf-8-sig", "ascii", "us-ascii", "iso-8859-1"}
"""Encodings in which Python reads the same characters from ASCII bytes as a person does."""


def look_at(
    manifest: Manifest, texts: Mapping[str, bytes], store: ProjectStore, approved: Iterable[ProjectId]
) -> tuple[RequestFile, ...]:
    """The script first, then what changed, what is new, what is gone, what is as it was.

    ``approved``: projects that this user allowed, the latest first; the first of them with a script of this
    name that is here with all its files is what is compared with.
    """
    before = _last_allowed(manifest.script, store, approved)
    old = {} if before is None else {file.path: file for file in before.files}
    room = MOST_READ_BYTES

    def read(of: Manifest, file: ProjectFile) -> bytes | None:
        nonlocal room
        if file.size > room or (data := store.read(of.digest, file)) is None:
            return None
        room -= len(data)
        return data

    found = []
    for file in manifest.files:
        was = old.pop(file.path, None)
        change: Change = _change(file, was, compared=before is not None)
        then = read(before, was) if before is not None and was is not None else None
        now = texts.get(file.path, then if change == "same" else None)
        found.append(_shown(file, change, now, then if change == "changed" else None))
    found += [RequestFile(path=file.path, size=file.size, change="gone") for file in old.values()]
    order = ("changed", "new", "gone", "same", "")
    return tuple(
        sorted(found, key=lambda each: (each.path != manifest.script, order.index(each.change), each.path))
    )


def visible(text: str) -> str:
    """Python's lines, with whatever would hide or turn characters spelled out (CVE-2021-42574)."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char if _is_seen(char) else f"⟨U+{ord(char):04X}⟩" for char in lines)


def difference(path: str, before: str, now: str) -> str:
    """A unified diff. Where comparing would take too long, all that differs is taken out and put in anew."""
    old, new = before.split("\n"), now.split("\n")
    shortest = min(len(old), len(new))
    head = next((at for at in range(shortest) if old[at] != new[at]), shortest)
    tail = next((at for at in range(shortest - head) if old[-1 - at] != new[-1 - at]), shortest - head)
    if (len(old) - head - tail) * (len(new) - head - tail) > MOST_COMPARED:
        begin, end = max(0, head - CONTEXT_LINES), len(new) - tail
        lines = [f"--- {path}", f"+++ {path}", f"@@ -{head + 1} +{head + 1} @@"]
        lines += [f" {line}" for line in new[begin:head]]
        lines += [f"-{line}" for line in old[head : len(old) - tail]]
        lines += [f"+{line}" for line in new[head:end]]
        return "\n".join([*lines, *(f" {line}" for line in new[end : end + CONTEXT_LINES])])
    return "\n".join(difflib.unified_diff(old, new, path, path, lineterm="", n=CONTEXT_LINES))


def _last_allowed(script: str, store: ProjectStore, approved: Iterable[ProjectId]) -> Manifest | None:
    for digest in approved:
        if store.has(digest) and (manifest := store.manifest(digest)) and manifest.script == script:
            return manifest
    return None


def _change(file: ProjectFile, was: ProjectFile | None, *, compared: bool) -> Change:
    if not compared:
        return ""
    if was is None:
        return "new"
    return "same" if was.sha256 == file.sha256 else "changed"


def _shown(file: ProjectFile, change: Change, now: bytes | None, then: bytes | None) -> RequestFile:
    path, size = file.path, file.size
    if now is None or not is_text(now):
        return RequestFile(path=path, size=size, change=change)
    if path.endswith((".py", ".pyw")) and (encoding := _encoding(now)) not in _AS_WRITTEN:
        note = f"It says that it is written in {visible(encoding)}: Python may read something else in it."
        return RequestFile(path=path, size=size, change=change, text=visible(now.decode()), note=note)
    text = _source(path, now)
    diff = difference(path, _source(path, then), text) if then is not None and is_text(then) else ""
    return RequestFile(path=path, size=size, change=change, text=text, diff=diff)


def _source(path: str, data: bytes) -> str:
    """Of a notebook what runs: its code cells, without what only Jupyter can do."""
    if path.endswith(NOTEBOOK):
        try:
            cells = parse_notebook(data, path).cells
        except TandemError:
            pass  # shown as it is
        else:
            return visible("\n\n".join(f"# --- cell {cell.number}\n{cell.text}" for cell in cells))
    return visible(data.decode())


def _encoding(source: bytes) -> str:
    try:
        return tokenize.detect_encoding(io.BytesIO(source).readline)[0]
    except SyntaxError:
        return "an unknown encoding"


def _is_seen(char: str) -> bool:
    return char in "\n\t" or (unicodedata.category(char) not in _HIDING and char not in _BLANK)


_HIDING = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters that look like nothing."""
