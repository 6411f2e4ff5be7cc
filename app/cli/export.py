"""``tandem export``: writes a job for a cluster that trains a script or repeats an earlier run."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import shlex
from dataclasses import replace
from pathlib import Path

from app.cli import completion, run_flags
from app.cli.command_line import OneOf, argument, node_of, subcommand
from app.cli.exit_codes import ExitCode
from app.cli.screen import Screen
from core.export.job import CLAIM, IMAGE, Job, Launcher, check_script, of_run
from core.export.write import Written, folder_of, write
from core.script.analysis import analyse
from core.script.find import find_script
from core.vocabulary.answers import RunDetails
from core.vocabulary.commands import GetRun
from core.vocabulary.ids import RunId

_SEEDS = 1 << 31
LAUNCHERS = {
    "slurm": "a file for sbatch",
    "kubernetes": "an Indexed Job with a headless service",
    "ray": "a driver that starts an actor for each member",
}


@subcommand(
    "write the job that trains a script on a cluster: Slurm, Kubernetes, Ray",
    OneOf(
        tuple(
            argument(f"--{name}", dest="launcher", action="store_const", const=name, help=f"write {what}")
            for name, what in LAUNCHERS.items()
        ),
        required=True,
    ),
    OneOf(
        (
            argument(
                "script", metavar="SCRIPT", nargs="?", help="a Keras script, or a folder with exactly one"
            ),
            argument(
                "--again",
                metavar="RUN",
                help="instead of SCRIPT: repeat a run, with its arguments, seed, shares and number of "
                "members",
                completer=completion.runs,
            ),
        ),
        required=True,
    ),
    argument("--members", type=int, metavar="N", help="how many members (default: 2)"),
    argument("--share", metavar="ROWS,…", help="parts of each batch by rank, such as 48,16 (default: equal)"),
    argument("--seed", type=int, metavar="N", help="random seed (default: a new one)"),
    *run_flags.flags(run_flags.OF_A_MEMBER),
    argument("--out", metavar="DIR", help="a new folder for the files (default: SCRIPT-slurm and so on)"),
    argument(
        "--program", default="tandem", metavar="COMMAND", help="Tandem's command there (default: tandem)"
    ),
    argument(
        "--image",
        default=IMAGE,
        metavar="IMAGE",
        help="Kubernetes: the image that has Tandem (default: %(default)s)",
    ),
    argument(
        "--claim",
        default=CLAIM,
        metavar="NAME",
        help="Kubernetes: the volume claim that all members mount (default: %(default)s)",
    ),
    more="""\
This starts nothing. It writes a folder beside the script, with the job file and the secret from which the
members derive their keys, and shows the command that starts the job. Each member runs tandem member.
docs/cluster.md lists what the cluster needs.
""",
)
async def export(arguments: argparse.Namespace, screen: Screen) -> int:
    launcher: Launcher = arguments.launcher
    job = _as_asked(await _job(arguments, screen), arguments)
    folder = Path(arguments.out).absolute() if arguments.out else folder_of(job.script, launcher)
    written = await asyncio.to_thread(write, job, launcher, folder)
    if screen.json:
        screen.result(
            {"ok": True, "files": [str(path) for path in written.files], "start": written.start}
            | {"members": job.members, "seed": job.seed, "shares": job.shares}
        )
    else:
        _show(job, written, screen)
    return ExitCode.OK


async def _job(arguments: argparse.Namespace, screen: Screen) -> Job:
    if arguments.again is not None:
        async with node_of(arguments) as follower:
            found = await follower.submit(GetRun(run=RunId(arguments.again), points=False), RunDetails)
        return of_run(found)
    script = find_script(Path(arguments.script).absolute())
    read = await asyncio.to_thread(analyse, script)
    check_script(read)
    for mistake in read.mistakes:
        screen.say(str(mistake.problem))
    return Job(script=script, seed=secrets.randbelow(_SEEDS))


def _as_asked(job: Job, arguments: argparse.Namespace) -> Job:
    """Applies the given options over the run's own. If the members changed, shares are equal unless given."""
    members = job.members if arguments.members is None else arguments.members
    shares = job.shares if members == job.members else ()
    if arguments.share is not None:
        shares = run_flags.shares_by_rank(arguments.share)
        members = len(shares) if arguments.members is None else members
    return replace(
        job,
        members=members,
        shares=shares,
        arguments=arguments.script_arguments or job.arguments,
        seed=job.seed if arguments.seed is None else arguments.seed,
        options=run_flags.options_of(arguments, job.options),
        program=tuple(shlex.split(arguments.program)),
        image=arguments.image,
        claim=arguments.claim,
    )


def _show(job: Job, written: Written, screen: Screen) -> None:
    shared = f"shares {','.join(map(str, job.shares))}" if job.shares else "equal shares"
    screen.say(f"{job.members} members, {shared}, seed {job.seed}.")
    for path in written.files:
        screen.say(str(path))
    screen.say(f"Start it there: {written.start}", "bold")
