"""A laptop's card in words: its state, its hardware, its use. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from app.words.run_words import listed
from core.script.analysis import SUFFIXES
from core.vocabulary import units
from core.vocabulary.access import Grant
from core.vocabulary.answers import Refused, RequestFile
from core.vocabulary.data import Data
from core.vocabulary.errors import Problem
from core.vocabulary.events import ConsentAsked
from core.vocabulary.manifest import Difference
from core.vocabulary.permission import Gap, Part, Walls
from core.vocabulary.readings import Hardware, Reading
from core.vocabulary.state import Device, Me
from core.vocabulary.text import spelled
from core.vocabulary.versions import who_changes

LARGE_BYTES = 10_000_000
"""Less is mentioned only where sending it takes a second or more."""
STALE_AFTER_S = 5.0
"""Readings come once a second; after this long without one they are shown as old."""


_NETWORKS = {
    "downloads": "the laptops of the run, and the internet through Tandem's proxy",
    "none": "the laptops of the run only",
    "": "everything that this laptop reaches",
}
_GAPS: Mapping[Gap, str] = {
    "network": "services on this laptop and on its network",
    "processes": "ending your other programs",
}
_ANYTHING = (
    "This system cannot confine scripts: this one can do anything you can do on this laptop. Allow it only "
    "if you trust the sender."
)


def opened_words(opened: Sequence[Grant]) -> str:
    """A script's requests for access beyond its own folders: a sentence, then a line each. ``""``:
    nothing."""
    if not opened:
        return ""
    lines = (
        f"{'Read and change' if each.write else 'Read'} {spelled(each.asked)} ({spelled(each.path)})"
        for each in opened
    )
    return "\n".join(("It also asks to open the following, including everything inside:", *lines))


def takes_words(consent: ConsentAsked) -> str:
    """How much is sent at most, and how long that would take; ``""``: too little to
    mention."""
    total = sum(file.size for file in consent.files) + sum(data.total_bytes for data in consent.data)
    total += consent.checkpoint_bytes
    files = units.number_of(len(consent.files) + sum(data.files for data in consent.data), "file")
    seconds = total / consent.rate_bytes_s if consent.rate_bytes_s > 0 else 0.0
    if seconds >= 1:
        return f"Sending all of it, {files}, {units.size(total)}, takes about {units.duration(seconds)}."
    if total < LARGE_BYTES:
        return ""
    known = "" if consent.rate_bytes_s > 0 else " The time that this takes is shown once it begins."
    return f"Up to {files}, {units.size(total)}, will be sent here.{known}"


def data_words(data: Sequence[Data]) -> list[str]:
    """The data of a consent question, a line each."""
    return [
        f"Data {spelled(each.name)}: {units.number_of(each.files, 'file')}, "
        f"{units.size(each.total_bytes)}, sent and kept here unless "
        + ("Keras has downloaded it here." if each.kept_by_keras else "a data folder here holds the same.")
        + (" It can carry code, which runs only if the script loads it." if each.may_carry_code else "")
        for each in data
    ]


def reach_words(walls: Walls, gaps: Sequence[Gap], network: str) -> str:
    """What the script of a consent question could do here."""
    if walls == "none":
        return _ANYTHING
    words = (
        "The script cannot reach your files. It reads the system, Python's packages and Keras' data sets, "
        f"and writes to folders of its own. Over the network it reaches {_NETWORKS[network]}."
    )
    left = [_GAPS[gap] for gap in gaps if gap != "network" or not network]
    return (
        f"{words} This system's Linux is too old to keep it from {' and from '.join(left)}."
        if left
        else words
    )


_DEEDS = {"reads": "Reads", "writes": "Writes", "downloads": "Downloads", "starts": "Starts"}
_SHOWN_DEEDS = 6


def deed_lines(files: Sequence[RequestFile]) -> list[tuple[str, bool]]:
    """What a request's code does according to its text, one line per kind; True if it needs attention."""
    code = [file for file in files if file.path.endswith(SUFFIXES) and file.change != "gone"]
    found = [(deed, file) for file in code for deed in file.deeds or ()]
    lines = []
    for kind, title in _DEEDS.items():
        words: dict[str, str] = {}
        for deed, file in found:
            if deed.kind == kind:
                place = f"line {deed.line}" if file is files[0] else f"{spelled(file.path)}, line {deed.line}"
                words.setdefault(deed.what, f"{deed.what} ({place})" if deed.marked else deed.what)
        told = list(words.values())
        more = f" and {len(told) - _SHOWN_DEEDS} more" if len(told) > _SHOWN_DEEDS else ""
        said = ", ".join(told[:_SHOWN_DEEDS]) + more or "nothing found in its code"
        lines.append((f"{title}: {said}", any(deed.kind == kind and deed.marked for deed, _ in found)))
    if unseen := [spelled(file.path) for file in code if file.deeds is None]:
        lines.append((f"Not checked, read it yourself: {listed(unseen)}", True))
    return lines


BEYOND: Mapping[Part, str] = {
    "older": "You allowed it in an earlier version of Tandem, which did not record its access.",
    "arguments": "It has other arguments.",
    "strategy": "It trains with another kind of strategy.",
    "network": "It reaches more of the network.",
    "walls": "It reaches more of this laptop.",
    "folders": "It asks for other files or folders of this laptop.",
    "data": "It comes with other data.",
}
"""How a request exceeds what was allowed before."""


def changed_words(differs: Mapping[str, Difference], beyond: Iterable[Part]) -> str:
    """Changes since the last consent: ``Changed: train.py. It has other arguments.``"""
    by_kind = {
        words: [spelled(path) for path, kind in differs.items() if kind == of]
        for of, words in (("changed", "Changed"), ("new", "New"), ("gone", "No longer there"))
    }
    said = [f"{words}: {listed(paths)}." for words, paths in by_kind.items() if paths]
    said = said or ["Its files are as you allowed them."]
    return " ".join((*said, *(BEYOND[part] for part in beyond)))


def state_words(device: Device) -> tuple[str, str]:
    """A device's current state, and the kind of label for it."""
    if not device.paired:
        return ("Not paired", "faint") if device.seen or device.linked else ("Gone", "faint")
    if not device.linked:
        if device.problem is not None:
            return "Not connected", "bad"
        return ("Connecting…", "faint") if device.seen else ("Not on this network", "faint")
    if device.problem is not None:
        versions = device.problem.code == "versions-differ"
        return ("Versions differ", "warning") if versions else ("No run possible", "warning")
    return ("Training", "good") if device.busy else ("Ready", "good")


def may_match(me: Me | None, device: Device) -> bool:
    """Whether making an environment with its versions here fixes the mismatch."""
    if me is None or device.versions is None or not device.paired or device.problem is None:
        return False
    return device.problem.code == "versions-differ" and who_changes(me.versions, device.versions) == "here"


def hardware_words(hardware: Hardware | None) -> str:
    """``NVIDIA RTX 3060 · Ryzen 7, 16 cores · 32 GB``; ``""`` if unknown."""
    if hardware is None:
        return ""
    gpus = ", ".join(hardware.gpus) or "CPU only"
    cores = "1 core" if hardware.cores == 1 else f"{hardware.cores} cores"
    cpu = f"{hardware.cpu}, {cores}" if hardware.cpu else cores
    return f"{gpus} · {cpu} · {units.size(hardware.memory_bytes)}"


def use_words(reading: Reading | None) -> str:
    """A laptop's use, on one line."""
    if reading is None:
        return ""
    parts = [f"CPU {reading.cpu_pct:.0f} %"]
    if reading.memory_total_bytes:
        share = 100 * reading.memory_used_bytes / reading.memory_total_bytes
        parts.append(f"memory {share:.0f} %")
    for gpu in reading.gpus[:2]:
        if gpu.use_pct is not None:
            parts.append(f"GPU {gpu.use_pct:.0f} %")
    return " · ".join(parts)


def in_the_network(addresses: Iterable[str]) -> tuple[str, ...]:
    """Addresses that another laptop could reach: a loopback address is each laptop's own."""
    return tuple(each for each in addresses if not _is_loopback(each))


def _is_loopback(address: str) -> bool:
    return address.startswith(("127.", "[::1]", "localhost")) or address == "::1"


def addresses_words(addresses: tuple[str, ...], limit: int = 2) -> str:
    if addresses and not (addresses := in_the_network(addresses)):
        return "On this computer"
    shown = ", ".join(addresses[:limit])
    return f"{shown} and {len(addresses) - limit} more" if len(addresses) > limit else shown


def code_words(code: str) -> str:
    """A pairing code as ``408 355``: three digits are read at a glance."""
    digits = "".join(code.split())
    return f"{digits[:3]} {digits[3:]}"


def problem_of(answer: object) -> Problem | None:
    """Why a command was refused; None if it was not."""
    return answer.problem if isinstance(answer, Refused) else None
