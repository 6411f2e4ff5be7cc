"""The laptops in a run's report: their hardware, their load, and when they joined and left. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.cluster.tf_config import tf_config
from core.report.curves import member_names
from core.vocabulary import units
from core.vocabulary.answers import RunDetails
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.laptops import Change, Machine
from core.vocabulary.plan import Plan, Task

MOST_TURNS = 200
_CHANGES: dict[Change, str] = {
    "joined": "began to train",
    "away": "was away: it did not answer",
    "back": "was back",
    "lost": "was lost",
    "left": "left",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A laptop. Texts are empty where unknown."""

    name: str
    hardware: str
    gpus: str
    system: str
    versions: str
    use: str


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """``after`` the run's start, ``12:03:10`` by the clock of the laptop that keeps this record."""

    clock: str
    after: str
    name: str
    words: str


def machines(details: RunDetails) -> list[Row]:
    """The run's laptops in the plan's order; empty if nothing is known about any of them."""
    known = details.entry.machines
    if not known and not details.uses:
        return []
    return [_row(details, device, name, known.get(device)) for device, name in member_names(details).items()]


def timeline(details: RunDetails) -> list[TimelineRow]:
    names, began_s = member_names(details), details.entry.started_s
    return [
        TimelineRow(
            clock=units.moment(turn.at_s, "%H:%M:%S"),
            after=units.clock(turn.at_s - began_s),
            name=names.get(turn.device, short(turn.device)),
            words=f"{_CHANGES[turn.change]}: {turn.words}" if turn.words else _CHANGES[turn.change],
        )
        for turn in details.membership[:MOST_TURNS]
    ]


def tf_configs(details: RunDetails) -> list[tuple[str, str]]:
    """The TF_CONFIG of each task, named by its laptop, and by its role where the run names roles; none for a
    single process. A run that ended before its laptops had chosen their ports has none either."""
    plan = details.plan
    if plan is None or plan.solo or not all(task.host and task.port for task in plan.tasks):
        return []
    names = member_names(details)
    return [(_task(plan, task, names), tf_config(plan, task)) for task in plan.tasks]


def _task(plan: Plan, task: Task, names: Mapping[DeviceId, str]) -> str:
    name = names.get(task.device, short(task.device))
    return f"{task.name} on {name}" if plan.names_roles else name


def _row(details: RunDetails, device: DeviceId, name: str, machine: Machine | None) -> Row:
    hardware = machine.hardware if machine is not None else None
    versions = machine.versions if machine is not None else None
    packages: Sequence[tuple[str, str]] = (
        ()
        if versions is None
        else (
            ("Tandem", versions.tandem),
            ("Python", versions.python),
            ("TensorFlow", versions.tensorflow),
            ("Keras", versions.keras),
        )
    )
    return Row(
        name=name,
        hardware=""
        if hardware is None
        else f"{hardware.cpu}, {hardware.cores} cores, {units.size(hardware.memory_bytes)}",
        gpus="" if hardware is None else ", ".join(hardware.gpus) or "none",
        system="" if versions is None else versions.platform,
        versions=", ".join(f"{label} {version}" for label, version in packages if version),
        use=_use(details, device),
    )


def _use(details: RunDetails, device: DeviceId) -> str:
    """``GPU 84 %, CPU 31 %``: means over the run."""
    uses = details.uses.get(device, ())
    cards = [used.gpu_pct for used in uses if used.gpu_pct is not None]
    processors = [used.cpu_pct for used in uses]
    said = [
        f"{label} {sum(values) / len(values):.0f} %"
        for label, values in (("GPU", cards), ("CPU", processors))
        if values
    ]
    return ", ".join(said)
