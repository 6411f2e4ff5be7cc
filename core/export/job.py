"""A run as a job for a cluster: how each member is started, from scratch or like an earlier run.

Pure. Every member runs ``tandem member``, whatever launcher starts it; see app/cli/member.py.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Literal

from core.script.analysis import ScriptReport
from core.vocabulary.answers import RunDetails
from core.vocabulary.errors import TandemError
from core.vocabulary.options import AWAY_S, RunOptions
from core.vocabulary.plan import shares_by_rank

Launcher = Literal["slurm", "kubernetes", "ray"]
MOST_MEMBERS = 1024
IMAGE = CLAIM = "tandem"
_LONGEST_NAME = 40
"""With an index and a service's name appended, it is still a valid host name: 63 characters at most."""
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run on a cluster. ``shares``: parts of each batch by rank; ``()``: equal. ``program``: the command
    that starts Tandem on the cluster's machines.

    ``image`` and ``claim``: for Kubernetes only, the containers' image and the volume that all mount.
    """

    script: PurePath
    arguments: tuple[str, ...] = ()
    members: int = 2
    shares: tuple[int, ...] = ()
    seed: int = 0
    options: RunOptions = field(default_factory=RunOptions)
    program: tuple[str, ...] = ("tandem",)
    image: str = IMAGE
    claim: str = CLAIM
    token: str = field(default_factory=lambda: secrets.token_hex(3))
    """Distinguishes this job's names from those of other jobs with the same script."""

    @property
    def name(self) -> str:
        """A DNS label (RFC 1123): from the script's name and the token."""
        words = re.sub(r"[^a-z0-9]+", "-", self.script.stem.lower()).strip("-")
        stem = words if words[:1].isalpha() else f"run-{words}".strip("-")
        return f"{stem[:_LONGEST_NAME].rstrip('-')}-{self.token}"

    def command(self, script: PurePath, at: Callable[[str], str]) -> list[str]:
        """The command that starts a member. ``script``: its path there; ``at``: the path of a job's file."""
        words = [*self.program, "member", str(script), "--seed", str(self.seed)]
        if self.shares:
            words += ["--share", ",".join(map(str, self.shares))]
        if self.options.wire != "f32":
            words += ["--wire", self.options.wire]
        if self.options.sync != "exact":
            words += ["--sync", self.options.sync]
        if self.options.away_s != AWAY_S:
            words += ["--wait-for-away", f"{self.options.away_s / 60:g}"]
        if self.options.accept_differences:
            words += ["--accept-differences"]
        words += ["--checkpoints", at("kept"), "--save", at("trained")]
        return [*words, "--", *self.arguments] if self.arguments else words


def new_secret() -> str:
    """A secret from which the members' keys are derived (``core.exchange.keys.derive``)."""
    return secrets.token_hex(_SECRET_BYTES)


def of_run(details: RunDetails) -> Job:
    """A job that repeats the run. Raises ``TandemError`` if that is impossible."""
    plan, entry = details.plan, details.entry
    if not entry.source:
        raise TandemError(
            code="run-of-another",
            what=f"The run {entry.run} was started on another laptop, and its script is there.",
            fix="Export it there, or name a script of this laptop.",
        )
    if plan is None:
        raise TandemError(
            code="no-plan",
            what=f"The members of the run {entry.run} are no longer known.",
            fix=f"Name its script instead: {entry.source}",
        )
    if plan.strategy == "own" and plan.exchange != "tls":  # replicas of a custom loop meet over TLS
        raise _own_strategy(entry.script)
    shares = shares_by_rank(plan)
    # Shares that followed the laptops' speeds do not apply to a cluster's machines.
    alike = plan.balance or len(set(shares)) == 1
    return Job(
        script=PurePath(entry.source),
        arguments=plan.arguments,
        members=max(2, len(plan.tasks)),
        shares=() if alike else shares,
        seed=plan.seed,
        options=plan.options,
    )


def check(job: Job) -> None:
    """Raises ``TandemError`` for a job whose members cannot be started."""
    if not 2 <= job.members <= MOST_MEMBERS:
        raise _refused(f"A job cannot have {job.members} members.", f"Give 2 to {MOST_MEMBERS}: --members 4.")
    if job.shares:
        check_shares(job.shares, job.members)
    if any(not word.isprintable() for word in (str(job.script), *job.arguments, *job.program)):
        raise _refused(
            "The script's path or its arguments contain characters that a job file cannot hold.",
            "Rename it, without line breaks and control characters.",
        )


def check_shares(shares: Sequence[int], members: int) -> None:
    """Raises ``TandemError`` unless each of the members has a part, by rank."""
    if len(shares) != members or min(shares) < 0 or not sum(shares):
        raise _refused(
            f"--share {','.join(map(str, shares))} does not give each of {members} members a part.",
            "Give as many numbers as there are members, by rank, or omit it for equal parts.",
        )


def check_script(read: ScriptReport) -> None:
    """Raises ``TandemError`` for a script that Tandem's members cannot share."""
    if read.kind == "own" and not (read.fits_in_own_strategy or read.loops_in_mirrored_strategy):
        raise _own_strategy(PurePath(read.script).name)


def _own_strategy(script: str) -> TandemError:
    return TandemError(
        code="own-strategy",
        what=f"{script} has its own strategy.",
        fix="Start it with the launcher itself: TensorFlow's strategies read TF_CONFIG without Tandem.",
    )


def _refused(what: str, fix: str) -> TandemError:
    return TandemError(code="bad-option", what=what, fix=fix)
