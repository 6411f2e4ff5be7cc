"""The plan of a run: its members, their roles, hosts, and shares of each batch. Pure data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from enum import StrEnum
from itertools import accumulate
from math import gcd, lcm
from typing import Literal

import msgspec
from msgspec.structs import replace

from core.vocabulary.access import Accesses
from core.vocabulary.bounds import Argument, Few, FewBy, FilePath, Key, Many, MetEvery, Name, SentBits, Word
from core.vocabulary.data import Datas, Folders
from core.vocabulary.ids import DeviceId, ProjectId, RunId, SweepId
from core.vocabulary.options import RunOptions


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

Exchange = Literal["tls", "sealed", "tensorflow"]
"""How members of a run communicate. ``tls``: by ``core.exchange``. ``sealed``: by TensorFlow's runtime, in
trainers that only each other's relays reach, over TLS. ``tensorflow``: a run of one process, without
communication; older versions used it for shared runs whose port was open, which are refused now."""


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint's position in a training. All counts begin at 0."""

    step: int = 0
    """Steps done, over all fits."""
    fit: int = 0
    """The current call of ``fit``; between two calls, the next one."""
    epoch: int = 0
    batch: int = 0
    """Batches done in this epoch."""
    epochs: int = 0
    """Whole epochs done, over all fits."""
    steps_in_epoch: int | None = None
    """In this fit, if known."""

    @property
    def next_step(self) -> tuple[int, int]:
        """Epoch and step at which the training resumes. After an epoch whose steps are all done comes the
        next one, once it is validated."""
        done = self.steps_in_epoch is not None and self.batch >= self.steps_in_epoch > 0
        return (self.epoch + 1, 0) if done else (self.epoch, self.batch)

    @property
    def order(self) -> tuple[int, int, int, int]:
        """The newest is the largest."""
        return self.step, self.fit, self.epoch, self.batch


class RunOwner(msgspec.Struct, frozen=True, kw_only=True):
    """The laptop on which Train was pressed, if it was lost and another starter stands in for it."""

    device: DeviceId
    run: RunId
    """The last run that it started itself."""


class Resumption(msgspec.Struct, frozen=True, kw_only=True):
    """A run that resumes another one."""

    run: RunId
    """The run that ended early."""
    checkpoint: ProjectId
    """The digest of the checkpoint's files: the same on all members."""
    moment: Moment
    took_s: float = 0.0
    """How long that run took, and those that it resumed itself: without the pauses between them."""
    back: Few[Name] = ()
    """The laptops for which that run was stopped, to go on with them."""
    met_every: MetEvery = 0
    """How members met and sent gradients in those runs, as in ``Summary``."""
    sent_bits: SentBits = 0
    owner: RunOwner | None = None
    """Not None: the starter stands in for it. The script then runs within walls on every laptop."""


class TrialOf(msgspec.Struct, frozen=True, kw_only=True):
    """A run's place in a sweep. ``number`` counts from 1."""

    sweep: SweepId
    number: int
    trials: int
    """All of them."""
    argument_sets: Few[Many[Argument]]
    """The script's arguments in all trials: a user allows them together."""


class RunSpec(RunOptions, frozen=True, kw_only=True):
    """A user's request. Empty ``devices`` with ``solo`` false means every paired device that is present."""

    script: FilePath
    """Path of the script, or of a folder with exactly one, on the starter's laptop."""
    arguments: Many[Argument] = ()
    devices: Few[DeviceId] = ()
    solo: bool = False
    roles: FewBy[DeviceId, Few[Role]] = {}
    """Roles that the user fixed; the others are proposed. More than one: that many tasks on the device."""
    shares: FewBy[DeviceId, int] = {}
    """Shares that the user fixed for every device, in rows of the global batch or any other unit. Empty: they
    follow the measured speeds."""
    shares_total: int | None = None
    """The sum of all shares; devices without one split the rest evenly. 100: shares are percent."""
    strategy: StrategyKind | None = None
    """Overrides the result of analysing the script."""
    seed: int | None = None
    exchange: Word | None = None
    """Set only by older versions. A shared run with ``tensorflow`` is refused."""
    resume: RunId | None = None
    """Continue this run, which ended early, from its newest checkpoint."""
    opens: FewBy[DeviceId, Accesses] = {}
    """Paths that the script asks to open on a laptop, beside its own folders. Each laptop's user is asked."""
    data: Folders = {}
    """Folders and files outside the project, on the starter's laptop, that the script reads."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of TF_CONFIG's cluster, and one trainer process. ``port`` 0: not chosen yet."""

    device: DeviceId
    role: Role
    index: int
    host: Name = ""
    port: int = 0
    certificate: Key = b""
    """Authenticates this trainer to the others in this run (DER); empty in a run of one process, and before
    it is made."""

    @property
    def name(self) -> str:
        """``chief:0`` and so on, as TensorFlow writes it."""
        return f"{self.role}:{self.index}"


class NodePin(msgspec.Struct, frozen=True, kw_only=True):
    """A member's node, for members that are not paired with it. ``certificate``: DER; ``port``: where it
    listens, at the host of its tasks."""

    certificate: Key
    port: int


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A device that takes part. ``share`` counts in the same unit as every other member's."""

    device: DeviceId
    name: Name
    share: int = 1
    opens: Accesses = ()
    """Paths that the script asks to open on it, beside its own folders."""
    node: NodePin | None = None
    """For this run's messages only. None: older versions, and where no members need it."""


class Plan(RunOptions, frozen=True, kw_only=True):
    """Everything that all members must agree on. Complete once each task has a host and a port."""

    run: RunId
    generation: int = 0
    starter: DeviceId
    project: ProjectId
    script: FilePath
    """Relative path inside the project."""
    arguments: Many[Argument] = ()
    strategy: StrategyKind = "managed"
    members: Few[Member]
    tasks: Few[Task]
    """In rank order: the chief first, then workers by index; then ps, then evaluator."""
    balance: bool = False
    """Shares follow the members' measured speeds. Members' ``share`` is the initial one."""
    seed: int = 0
    exchange: Word = "tensorflow"
    """An ``Exchange``. Any other value is from a newer Tandem, and is refused by name."""
    resume: Resumption | None = None
    code: Word = ""
    """The digest of the project's Python files: differences are accepted for it."""
    data: Datas = ()
    trial: TrialOf | None = None
    """Set for a trial of a sweep: it runs in a copy of the script's folder, on the starter's laptop too."""
    of_another: bool = False
    """The starter has the project from another laptop. The script then runs within walls on every laptop."""

    @property
    def solo(self) -> bool:
        """A single process: no cluster, no TF_CONFIG."""
        return len(self.tasks) == 1

    @property
    def names_roles(self) -> bool:
        """Whether its tasks are told apart by role, such as ``worker:0``; else by laptop."""
        return not self.solo and (self.strategy == "own" or len(self.tasks) > len(self.members))

    @property
    def patient(self) -> bool:
        """Silence alone does not end it: its trainers' connections survive silence."""
        return not self.solo

    @property
    def redials(self) -> bool:
        """A cut connection between its trainers is made again, and they report which members they wait
        for."""
        return self.exchange == "tls"

    @property
    def outlasts_losses(self) -> bool:
        """The run goes on without members lost during training, since members meet in managed calls."""
        return self.strategy == "managed" and self.redials

    @property
    def owner(self) -> RunOwner | None:
        """The lost laptop for which the starter stands in, if it does."""
        return None if self.resume is None else self.resume.owner

    @property
    def chief(self) -> Task:
        """The chief before any member has left."""
        return self.tasks[0]

    def chief_without(self, gone: Collection[DeviceId]) -> Task:
        """The first task on a present laptop; the first of all where none is present."""
        return next((task for task in self.tasks if task.device not in gone), self.tasks[0])

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
    """The complete plan: each task with the port and the certificate from its own device."""
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
    """The plan before anybody was prepared."""
    return replace(plan, tasks=tuple(replace(task, port=0, certificate=b"") for task in plan.tasks))


def ranks(plan: Plan) -> tuple[DeviceId, ...]:
    """The devices that compute a batch's rows, by rank: chief and workers."""
    return tuple(task.device for task in plan.tasks if task.role in COMPUTING)


def shares_by_rank(plan: Plan) -> tuple[int, ...]:
    """A device with several such tasks, one per GPU, splits its share equally between them."""
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
