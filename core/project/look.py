"""Shows a user a project before they say yes: its texts, and what changed since the last yes.

Blocks: use a thread. The texts come from another laptop: nothing in them may hide from the reader.
"""

from __future__ import annotations

import difflib
import io
import tokenize
from collections.abc import Iterable, Mapping

from core.project.store import ProjectStore
from core.project.texts import is_text
from core.script.analysis import SUFFIXES
from core.script.deeds import deeds
from core.script.notebook import SUFFIX as NOTEBOOK
from core.script.notebook import parse_notebook
from core.vocabulary.answers import Change, RequestFile
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import ProjectId
from core.vocabulary.manifest import Manifest, ProjectFile
from core.vocabulary.text import spelled

MOST_READ_BYTES = 512_000
"""Limit of all texts that are read from the store."""
MOST_COMPARED = 4_000_000
"""Limit of one version's lines times the other's, without common beginnings and ends: comparing is slow."""
CONTEXT_LINES = 3
_AS_WRITTEN = {"utf-8", "utf-8-sig", "ascii", "us-ascii", "iso-8859-1"}
"""Encodings in which Python reads ASCII bytes as the same characters as a person does."""


def look_at(
    manifest: Manifest, texts: Mapping[str, bytes], store: ProjectStore, approved: Iterable[ProjectId]
) -> tuple[RequestFile, ...]:
    """The script first, then changed, new, deleted, and unchanged files.

    ``approved``: projects that this user allowed, the latest first; compares with the first of them that has
    a script of this name and is here with all its files.
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
    """Python's lines, with characters that hide or reorder text spelled out (CVE-2021-42574)."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join("\t".join(map(spelled, line.split("\t"))) for line in lines.split("\n"))


def difference(path: str, before: str, now: str) -> str:
    """A unified diff. If comparing would take too long, removes and adds everything that differs."""
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
        note = f"It declares the encoding {visible(encoding)}: Python may read it differently."
        return RequestFile(path=path, size=size, change=change, text=visible(now.decode()), note=note)
    text = _source(path, now)
    does = deeds(path, text) if path.endswith(SUFFIXES) else None
    diff = difference(path, _source(path, then), text) if then is not None and is_text(then) else ""
    return RequestFile(path=path, size=size, change=change, text=text, diff=diff, deeds=does)


def _source(path: str, data: bytes) -> str:
    """The code that runs in a notebook: its code cells, without what only Jupyter can do."""
    if path.endswith(NOTEBOOK):
        try:
            cells = parse_notebook(data, path).cells
        except TandemError:
            pass  # shown unchanged
        else:
            return visible("\n\n".join(f"# --- cell {cell.number}\n{cell.text}" for cell in cells))
    return visible(data.decode())


def _encoding(source: bytes) -> str:
    try:
        return tokenize.detect_encoding(io.BytesIO(source).readline)[0]
    except SyntaxError:
        return "an unknown encoding"
