"""What a run is going to be: who takes part, as what, where, with how much of each batch. Pure data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from itertools import accumulate
from math import gcd, lcm
from typing import Literal

import msgspec
from msgspec.structs import replace

from core.vocabulary.ids import DeviceId, ProjectId, RunId


class Role(StrEnum):
    """A task type of TF_CONFIG. ``NONE``: the device takes no part in the run."""

    CHIEF = "chief"
    WORKER = "worker"
    PS = "ps"
    EVALUATOR = "evaluator"
    NONE = "none"


COMPUTING = (Role.CHIEF, Role.WORKER)

StrategyKind = Literal["managed", "own"]
"""``managed``: Tandem makes ``fit`` work across members. ``own``: the script builds its own strategy."""

Wire = Literal["f32", "bf16", "fp16", "auto"]

Exchange = Literal["tensorflow", "tls"]
"""By what members of a managed run meet: TensorFlow's own collectives, or ``core.exchange`` over TLS."""
PlannedExchange = Literal["tensorflow", "tls", "sealed"]
"""``sealed``: by TensorFlow's runtime, in trainers that none but each other's relays reach, over TLS."""
DEFAULT_EXCHANGE: Exchange = "tls"
"""Of a run that is not asked to meet by the one or the other."""

AWAY_S = 600.0
"""For so long a run waits by default for a laptop from which nothing comes."""
ASK_AFTER_S = 300.0
"""And so long after the last progress its user is asked whether to keep waiting."""


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """Where in a training a checkpoint was made. All count from 0."""

    step: int = 0
    """Steps done, over all fits."""
    fit: int = 0
    """Which call of ``fit`` goes on; the next one where none was under way."""
    epoch: int = 0
    batch: int = 0
    """Batches done in this epoch."""
    epochs: int = 0
    """Whole epochs done, over all fits."""

    @property
    def order(self) -> tuple[int, int, int, int]:
        """The newest is the largest."""
        return self.step, self.fit, self.epoch, self.batch


class Resumption(msgspec.Struct, frozen=True, kw_only=True):
    """A run resumes another one."""

    run: RunId
    """The run that ended before its time."""
    checkpoint: ProjectId
    """The digest of the checkpoint's files: all members have the same ones."""
    moment: Moment


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a user asks for. Empty ``devices`` with ``solo`` false means every paired device that is here."""

    script: str
    """Path of the script, or of a folder with exactly one, on the starter's laptop."""
    arguments: tuple[str, ...] = ()
    devices: tuple[DeviceId, ...] = ()
    solo: bool = False
    roles: dict[DeviceId, tuple[Role, ...]] = {}
    """Roles that the user fixed; the rest is proposed. More than one: that many tasks on the device."""
    shares: dict[DeviceId, int] = {}
    """Shares that the user fixed for every device, in rows of the global batch or any other unit. Empty:
    they follow the measured speeds."""
    shares_total: int | None = None
    """What all shares add up to; devices without one share the rest of it evenly. 100: shares are percent."""
    strategy: StrategyKind | None = None
    """Overrules what reading the script found."""
    seed: int | None = None
    wire: Wire = "f32"
    exchange: Exchange | None = None
    """None: whatever is the default for the script."""
    away_s: float = AWAY_S
    """For so long the run waits for a laptop from which nothing comes."""
    ask_after_s: float = ASK_AFTER_S
    """So long after the last progress the user is asked whether to keep waiting; 0: never."""
    resume: RunId | None = None
    """Go on with this run, which ended before its time, from its newest checkpoint."""
    downloads: bool = True
    """A script whose trainers are sealed may still download: each laptop lets it call out."""
    open_port: bool = False
    """This user accepts, for this run, that TensorFlow's port is open to the network where it cannot be
    sealed."""
    accept_differences: bool = False
    """Whatever is told of why the result may differ from one machine's is accepted beforehand."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of TF_CONFIG's cluster, and one trainer process. ``port`` 0: not chosen yet."""

    device: DeviceId
    role: Role
    index: int
    host: str = ""
    port: int = 0
    certificate: bytes = b""
    """By which this trainer proves to the others in this run who it is (DER); empty where they meet by
    TensorFlow, and before it is made."""

    @property
    def name(self) -> str:
        """``chief:0`` and so on, as TensorFlow says it."""
        return f"{self.role}:{self.index}"


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A device that takes part. ``share`` counts in the same unit as every other member's."""

    device: DeviceId
    name: str
    share: int = 1


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that every member must agree on. Complete once each task has a host and a port."""

    run: RunId
    generation: int = 0
    starter: DeviceId
    project: ProjectId
    script: str
    """Relative path inside the project."""
    arguments: tuple[str, ...] = ()
    strategy: StrategyKind = "managed"
    members: tuple[Member, ...]
    tasks: tuple[Task, ...]
    """In rank order: the chief first, then workers by index; then ps, then evaluator."""
    balance: bool = False
    """Shares follow the members' measured speeds. Members' ``share`` is where they begin."""
    seed: int = 0
    wire: Wire = "f32"
    exchange: str = "tensorflow"
    """A ``PlannedExchange``. Any other word is a newer Tandem's, and refused by name."""
    downloads: bool = True
    """See ``RunSpec``."""
    away_s: float = AWAY_S
    ask_after_s: float = ASK_AFTER_S
    resume: Resumption | None = None
    code: str = ""
    """The digest of the project's Python files: differences are accepted for it."""
    accept_differences: bool = False

    @property
    def solo(self) -> bool:
        """One process alone: no cluster, no TF_CONFIG."""
        return len(self.tasks) == 1

    @property
    def patient(self) -> bool:
        """Silence alone does not end it: what joins its trainers outlasts that."""
        return self.exchange in ("tls", "sealed")

    @property
    def redials(self) -> bool:
        """A connection between its trainers that was cut is made anew, and they tell whom they wait for."""
        return self.exchange == "tls"

    @property
    def has_keys(self) -> bool:
        """Each task has a certificate of this run."""
        return self.exchange in ("tls", "sealed")

    @property
    def opens_port(self) -> bool:
        """TensorFlow's port is open to the network: every user is to accept that."""
        return self.exchange == "tensorflow" and not self.solo

    @property
    def chief(self) -> Task:
        return self.tasks[0]

    def member(self, device: DeviceId) -> Member:
        """Raises KeyError for a device that is not in the run."""
        for member in self.members:
            if member.device == device:
                return member
        raise KeyError(device)

    def tasks_of(self, device: DeviceId) -> tuple[Task, ...]:
        return tuple(task for task in self.tasks if task.device == device)


def with_ports(
    plan: Plan,
    ports: Mapping[DeviceId, Mapping[str, int]],
    certificates: Mapping[DeviceId, Mapping[str, bytes]] | None = None,
) -> Plan:
    """The complete plan: each task with the port that its own device chose, and the certificate it made."""
    made = certificates or {}
    tasks = [
        replace(
            task,
            port=ports[task.device][task.name],
            certificate=made.get(task.device, {}).get(task.name, b""),
        )
        for task in plan.tasks
    ]
    return replace(plan, tasks=tuple(tasks))


def without_ports(plan: Plan) -> Plan:
    """As it was before anybody was prepared."""
    return replace(plan, tasks=tuple(replace(task, port=0, certificate=b"") for task in plan.tasks))


def ranks(plan: Plan) -> tuple[DeviceId, ...]:
    """The devices that compute a batch's rows, by rank: chief and workers."""
    return tuple(task.device for task in plan.tasks if task.role in COMPUTING)


def shares_by_rank(plan: Plan) -> tuple[int, ...]:
    """A device with several such tasks, one a GPU, shares its part equally between them."""
    tasks = Counter(ranks(plan))
    shares = {member.device: member.share for member in plan.members}
    unit = lcm(*(count // gcd(shares[device], count) for device, count in tasks.items()))
    return tuple(shares[device] * unit // tasks[device] for device in ranks(plan))


def split_rows(rows: int, shares: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Bounds (first, past the last) of each rank's rows in a batch of `rows`, proportional to `shares`.

    Cumulative rounding: bound k is rows * (s_0 + ... + s_k) / (s_0 + ... + s_n), rounded half up, so the
    parts are contiguous, in rank order, cover every row once, and equal the shares where rows == sum(shares).
    A rank may get no row. Raises ValueError for no shares, a negative share, a zero sum or negative rows.
    """
    check_shares(shares)
    if rows < 0:
        raise ValueError(f"rows must not be negative: {rows}")
    total = sum(shares)
    ends = [(2 * rows * cumulated + total) // (2 * total) for cumulated in accumulate(shares)]
    return tuple(zip([0, *ends[:-1]], ends, strict=True))


def check_shares(shares: tuple[int, ...]) -> None:
    """Raises ValueError unless `shares` are whole numbers, none negative, not all zero."""
    if not shares or any(share < 0 for share in shares) or sum(shares) == 0:
        raise ValueError(f"shares must be whole numbers, none negative, not all zero: {shares}")
