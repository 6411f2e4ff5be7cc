"""A sweep: one script with several sets of arguments, each trained on one laptop. Pure data."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from core.vocabulary.bounds import Argument, Detail, Few, FewBy, FilePath, Logs, Many, Name, Some
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, ProjectId, RunId, SweepId
from core.vocabulary.plan import RunSpec
from core.vocabulary.progress import Best, Diverged

MODELS_KEPT = 5
MOST_SETS, MOST_TRIALS = 256, 1_000

TrialStatus = Literal["waiting", "running", "finished", "failed"]
SweepPhase = Literal["running", "stopping", "finished", "stopped", "failed"]
"""``finished``: every trial is over. ``failed``: no laptop takes the remaining ones."""


class SweepSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A user's request."""

    run: RunSpec
    """The options that all trials share. ``devices``: the laptops that take trials, one at a time each;
    empty: every paired laptop present, or none with ``solo``. Arguments, roles and shares are unused."""
    argument_sets: Few[Many[Argument]]
    """The script's arguments, one set a trial."""
    repeat: int = 1
    """Trials of each set, with successive seeds."""
    here: bool = True
    """This laptop takes trials, too."""
    models: int | None = MODELS_KEPT
    """The number of best trials whose models are kept; None: all."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One set of arguments with one seed. ``number`` counts from 1."""

    number: int
    arguments: Many[Argument] = ()
    seed: int
    status: TrialStatus = "waiting"
    begun: int = 0
    """How often it was started: again after its laptop was lost, or it was stopped."""
    device: DeviceId | None = None
    """The laptop that trains it, or trained it last."""
    laptop: Name = ""
    """Its name."""
    run: RunId | None = None
    """Its newest run."""
    epochs: int = 0
    """Complete ones in that run."""
    logs: Logs = {}
    """Logs of the last complete epoch."""
    best: FewBy[Name, Best] = {}
    """As in a ``RunEntry``."""
    diverged: Diverged | None = None
    """The point at which its loss became NaN or infinite, and stayed so: it is not the best."""
    problem: Problem | None = None
    """Why it failed, or was interrupted last."""
    model: bool = True
    """False: its model was deleted, as others are better."""

    @property
    def over(self) -> bool:
        return self.status in ("finished", "failed")


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep as it is now."""

    sweep: SweepId
    spec: SweepSpec
    script: FilePath
    """Name of the script."""
    project: ProjectId
    """The files that every trial has."""
    trials: Some[Trial]
    phase: SweepPhase = "running"
    problem: Problem | None = None
    """Why it failed."""
    name: Detail = ""
    """The user's name for it on this laptop; ``""``: none."""
    note: Detail = ""
    """The user's note about it on this laptop."""

    @property
    def under_way(self) -> bool:
        return self.phase in ("running", "stopping")

    def trial(self, number: int) -> Trial:
        return self.trials[number - 1]

    def having(self, trial: Trial) -> Sweep:
        """The sweep with this trial replacing the one of the same number."""
        trials = (*self.trials[: trial.number - 1], trial, *self.trials[trial.number :])
        return replace(self, trials=trials)
