"""The run that a user is composing on the Train screen, and the resulting spec. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import asdict

from app.models import data_folders, openings
from core.sweep.values import argument_sets, combinations
from core.vocabulary import units
from core.vocabulary.answers import RunEntry
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.options import RunOptions
from core.vocabulary.plan import Role, RunSpec, StrategyKind
from core.vocabulary.state import Device, State
from core.vocabulary.sweep import MODELS_KEPT, Sweep, SweepSpec, Trial

LONGER = 3
_EPOCHS = ("--epochs", "--epoch", "--num-epochs", "--num_epochs", "--n-epochs", "--n_epochs")
"""Common names of a script's option for its epochs."""


@dataclass(frozen=True, slots=True)
class RunDraft:
    """``left_out``: connected devices that the user excludes. ``seed`` None: a new one.

    ``then``: the laptops of the earlier run that this one repeats, by their names then.
    """

    script: str = ""
    arguments: str = ""
    several: bool = False
    """Commas in ``arguments`` separate values, and every combination is a trial."""
    at_random: int | None = None
    """Number of combinations to try, drawn at random; None: all."""
    draw: int = 0
    """Seed of that random choice."""
    repeat: int = 1
    """Trials of each combination, with a seed each."""
    all_models: bool = False
    """Keeps the models of all trials, not only of the best."""
    left_out: frozenset[DeviceId] = frozenset()
    roles: dict[DeviceId, tuple[Role, ...]] = field(default_factory=dict)
    shares: dict[DeviceId, int] = field(default_factory=dict)
    strategy: StrategyKind | None = None
    seed: int | None = None
    opens: str = ""
    """See ``app.models.openings``."""
    data: str = ""
    """See ``app.models.data_folders``."""
    options: RunOptions = field(default_factory=RunOptions)
    then: dict[DeviceId, str] = field(default_factory=dict)


def as_then(entry: RunEntry, state: State) -> RunDraft:
    """A draft like an earlier run; script and arguments only if its record has no more."""
    arguments = shlex.join(entry.arguments)
    spec = entry.spec
    if spec is None:
        return RunDraft(script=entry.source, arguments=arguments)
    then = dict(zip(entry.device_ids, entry.devices, strict=False))
    here = {device.device for device in candidates(state)}
    if state.me is not None:
        here.add(state.me.device)
    return RunDraft(
        script=entry.source,
        arguments=arguments,
        left_out=frozenset(here - then.keys()),
        roles={device: roles for device, roles in spec.roles.items() if Role.NONE not in roles},
        shares=_whole_shares(spec, tuple(then)),
        strategy=spec.strategy,
        seed=spec.seed,
        opens=openings.written(spec.opens, state),
        data=data_folders.written(spec.data),
        options=spec.options,
        then=then,
    )


def like_trial(spec: RunSpec, trial: Trial, state: State) -> RunDraft:
    """A run on all available laptops with a trial's seed and its arguments, with ``LONGER`` times its epochs
    where they are given; ``spec`` is its sweep's."""
    return RunDraft(
        script=spec.script,
        arguments=shlex.join(_longer(trial.arguments)),
        strategy=spec.strategy,
        seed=trial.seed,
        opens=openings.written(spec.opens, state),
        data=data_folders.written(spec.data),
        options=spec.options,
    )


def _longer(words: Sequence[str]) -> list[str]:
    """A trial is short, as there are many of them."""
    longer, option = list[str](), False
    for word in words:
        name, equals, value = word.partition("=")
        number, before = (value, name + equals) if equals else (word, "")
        counts = (name in _EPOCHS if equals else option) and number.isascii() and number.isdigit()
        longer.append(f"{before}{LONGER * int(number)}" if counts else word)
        option = word in _EPOCHS
    return longer


def _whole_shares(spec: RunSpec, devices: tuple[DeviceId, ...]) -> dict[DeviceId, int]:
    """A share for each device: the command line may give just one fraction (25 %)."""
    missing = [device for device in devices if device not in spec.shares]
    if not spec.shares or spec.shares_total is None or not missing:
        return dict(spec.shares)
    rest = max(0, spec.shares_total - sum(spec.shares.values()))
    return {
        **{device: share * len(missing) for device, share in spec.shares.items()},
        **dict.fromkeys(missing, rest),
    }


def candidates(state: State) -> list[Device]:
    """Paired devices, those that could take part first."""
    paired = [device for device in state.devices.values() if device.paired]
    return sorted(paired, key=lambda device: why_not(device) != "")


def why_not(device: Device) -> str:
    """A few words on why a paired device cannot take part now; ``""`` if it can."""
    if not device.linked:
        return "not connected"
    if device.problem is not None:
        return "no run possible"
    return "is busy with another run" if device.busy else ""


def taking_part(draft: RunDraft, state: State) -> tuple[DeviceId, ...]:
    """This laptop first, unless excluded."""
    me = (state.me.device,) if state.me is not None and state.me.device not in draft.left_out else ()
    others = [device.device for device in candidates(state) if not why_not(device)]
    return (*me, *(device for device in others if device not in draft.left_out))


def standing_roles(draft: RunDraft, here: Sequence[DeviceId]) -> dict[DeviceId, tuple[Role, ...]]:
    """The fixed roles of the devices in ``here``.

    While the fixed chief is away, workers are not fixed, so that one can replace it.
    """
    roles = {device: roles for device, roles in draft.roles.items() if device in here}
    away = any(Role.CHIEF in given for device, given in draft.roles.items() if device not in here)
    if away and not any(Role.CHIEF in given for given in roles.values()):
        return {device: given for device, given in roles.items() if given != (Role.WORKER,)}
    return roles


def split(arguments: str) -> tuple[str, ...] | Problem:
    """Splits into words as a shell does."""
    try:
        return tuple(shlex.split(arguments))
    except ValueError:
        return Problem(
            code="arguments",
            what="The arguments have an unclosed quotation mark.",
            fix='Close it: --name "two words".',
        )


def sets_of(draft: RunDraft) -> tuple[tuple[str, ...], ...] | Problem:
    """The arguments of each trial; of a plain run: the only one's."""
    words = split(draft.arguments)
    if isinstance(words, Problem) or not draft.several:
        return words if isinstance(words, Problem) else (words,)
    try:
        return argument_sets(words, draft.at_random, draw=draft.draw)
    except TandemError as error:
        return error.problem


def more_sets(text: str, sweep: Sweep) -> tuple[tuple[str, ...], ...] | Problem:
    """The sets of arguments in ``text`` that a sweep does not have yet."""
    words = split(text)
    if isinstance(words, Problem):
        return words
    try:
        return tuple(each for each in argument_sets(words) if each not in sweep.spec.argument_sets)
    except TandemError as error:
        return error.problem


def combinations_of(draft: RunDraft) -> int:
    """The number of combinations of its values; 0 if they are invalid."""
    words = split(draft.arguments)
    try:
        return 0 if isinstance(words, Problem) else combinations(words)
    except TandemError:
        return 0


def sweep_of(draft: RunDraft, state: State) -> SweepSpec | Problem:
    """The spec for ``StartSweep``, or why there can be none."""
    run, sets = spec_of(draft, state), sets_of(draft)
    if isinstance(run, Problem):
        return run
    if isinstance(sets, Problem):
        return sets
    here = state.me is not None and state.me.device in taking_part(draft, state)
    models = None if draft.all_models else MODELS_KEPT
    return SweepSpec(run=run, argument_sets=sets, repeat=draft.repeat, here=here, models=models)


def spec_of(draft: RunDraft, state: State) -> RunSpec | Problem:
    """The spec for ``PlanRun`` and ``StartRun``, or why there can be none. With several values: that of the
    first trial."""
    sets = sets_of(draft)
    if isinstance(sets, Problem):
        return sets
    words = sets[0]
    here = taking_part(draft, state)
    if not here:
        return Problem(
            code="no-devices",
            what="No laptop takes part in the run.",
            fix="Give at least one of them a role.",
        )
    me = state.me.device if state.me is not None else None
    others = tuple(device for device in here if device != me)
    roles = standing_roles(draft, here)
    if me is not None and me not in here:
        roles[me] = (Role.NONE,)
    # Shares go for all or for none: a laptop that left takes its share with it.
    shares = {device: share for device, share in draft.shares.items() if device in here}
    try:
        opens = openings.read_line(draft.opens, state, Path.home())
        data = data_folders.read_line(draft.data)
    except TandemError as error:
        return error.problem
    return RunSpec(
        **asdict(draft.options),
        script=draft.script,
        arguments=words,
        devices=others,
        solo=not others,
        roles=roles,
        shares=shares if len(shares) == len(here) > 1 else {},
        strategy=draft.strategy,
        seed=draft.seed,
        opens={device: opens[device] for device in here if device in opens},
        data=data,
    )


def train_words(draft: RunDraft, state: State) -> str:
    """What pressing Train does."""
    if draft.several and not isinstance(sets := sets_of(draft), Problem):
        return f"Start {units.number_of(len(sets) * draft.repeat, 'trial')}"
    count = len(taking_part(draft, state))
    return "Train" if count < 2 else f"Train on {count} laptops"
