"""Whether a peer's project may run here without asking, and the words of the question. Pure.

Who approved what is kept in the trust store, for each device: its policy and the digests it may run.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection
from typing import Literal

import msgspec

from core.ids import DeviceId, ProjectId, short
from core.project.manifest import Manifest, ProjectFile
from core.project.paths import shown

Policy = Literal["ask", "always"]

FILES_SHOWN = 12


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """Paths that differ from the version that was approved last."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class ConsentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a person has to know to decide. ``changes`` None: no version of this project was approved."""

    device: DeviceId
    name: str
    project: ProjectId
    script: str
    arguments: tuple[str, ...] = ()
    files: tuple[ProjectFile, ...]
    changes: Changes | None = None


def needs_consent(policy: Policy, approved: Collection[ProjectId], project: ProjectId) -> bool:
    """Ask, unless this device may always run code here or these very bytes were approved before."""
    return policy != "always" and project not in approved


def request_for(
    manifest: Manifest,
    *,
    device: DeviceId,
    name: str,
    arguments: tuple[str, ...] = (),
    approved: Manifest | None = None,
) -> ConsentRequest:
    """The question about a checked manifest. ``approved``: the version that was approved last, if any."""
    return ConsentRequest(
        device=device,
        name=name,
        project=manifest.digest,
        script=manifest.script,
        arguments=arguments,
        files=manifest.files,
        changes=changes_between(approved, manifest) if approved else None,
    )


def changes_between(before: Manifest, after: Manifest) -> Changes:
    old = {file.path: file.sha256 for file in before.files}
    new = {file.path: file.sha256 for file in after.files}
    return Changes(
        added=tuple(path for path in new if path not in old),
        changed=tuple(path for path, sha256 in new.items() if old.get(path, sha256) != sha256),
        removed=tuple(path for path in old if path not in new),
    )


def question(request: ConsentRequest) -> str:
    """The question as plain lines. Nothing that the peer sent can move a cursor or forge a line."""
    size = sum(file.size for file in request.files)
    command = " ".join(shlex.quote(shown(part, 1000)) for part in (request.script, *request.arguments))
    lines = [
        f"{shown(request.name)} ({short(request.device)}) wants to run a program on this laptop:",
        f"  {command}",
        f"  {len(request.files):,} files, {size / 1e6:,.2f} MB, project {short(request.project)}",
    ]
    if request.changes is None:
        largest = sorted(request.files, key=lambda file: (file.path != request.script, -file.size))
        lines += [f"    {shown(file.path)} ({file.size:,} bytes)" for file in largest[:FILES_SHOWN]]
        lines += _more(len(largest))
    else:
        changes = request.changes
        marked = [("changed", path) for path in changes.changed]
        marked += [("new", path) for path in changes.added] + [("gone", path) for path in changes.removed]
        lines.append("  Since you allowed it last:")
        lines += [f"    {mark}: {shown(path)}" for mark, path in marked[:FILES_SHOWN]]
        lines += _more(len(marked))
    lines.append("It could do here whatever you can do. Allow it only if you trust the person behind it.")
    return "\n".join(lines)


def _more(count: int) -> list[str]:
    return [f"    and {count - FILES_SHOWN:,} more"] if count > FILES_SHOWN else []
