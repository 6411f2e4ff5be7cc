"""``tandem export``: from a script, from an earlier run, and which options override that run's."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import structs

from app.cli import command_line, export
from app.cli.exit_codes import ExitCode
from app.connection import NodeConnection
from core.export.job import Launcher
from core.vocabulary.answers import RunDetails, RunEntry
from core.vocabulary.commands import GetRun
from core.vocabulary.errors import TandemError
from core.vocabulary.phases import Finished
from tests.app.cli.scripted_node import RUN, ScriptedNode, Words
from tests.app.cli.test_member import LIMIT_S, SCRIPT, Job
from tests.core.cluster.laptops import plan_of
from tests.core.export.test_write import command_of, pod
from tests.core.trainer.attended import free_ports

FIT = "import keras\nmodel = keras.Sequential()\nmodel.fit([], [])\n"
OWN = """\
import tensorflow as tf
strategy = tf.distribute.experimental.ParameterServerStrategy(None)
with strategy.scope():
    strategy.run(print)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "project" / "train.py"
    path.parent.mkdir()
    path.write_text(FIT)
    return path


async def exported(*words: str, screen: Words | None = None) -> Words:
    screen = screen or Words(json=True)
    arguments = command_line.read(["export", *words])
    assert await export.export(arguments, screen) == ExitCode.OK
    return screen


def told(screen: Words) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(screen.out.getvalue())
    return found


async def test_a_scripts_job_lies_beside_it_with_a_seed_of_its_own(script: Path) -> None:
    first = told(await exported("--slurm", str(script)))
    second = told(await exported("--slurm", str(script), "--out", str(script.parent / "other")))
    folder = script.parent / "train-slurm"
    assert first["files"] == [str(folder / "job.sbatch"), str(folder / "secret")]
    assert first["start"] == f"sbatch {folder}/job.sbatch"
    assert first["seed"] != second["seed"], "it stands in the file, and stays when that is started again"
    assert (first["members"], first["shares"]) == (2, [])


async def test_the_words_name_the_files_and_what_starts_them(script: Path) -> None:
    words = Words()
    await exported("--ray", str(script), "--share", "48,16", "--seed", "7", screen=words)
    folder = script.parent / "train-ray"
    assert words.said.splitlines() == [
        "2 members, shares 48,16, seed 7.",
        str(folder / "driver.py"),
        str(folder / "secret"),
        f"Start it there: python {folder}/driver.py",
    ]


async def test_a_script_with_a_strategy_of_its_own_is_no_job_of_tandems(script: Path) -> None:
    script.write_text(OWN)
    with pytest.raises(TandemError) as failure:
        await exported("--slurm", str(script))
    assert failure.value.code == "own-strategy"


async def test_shares_say_how_many_members_there_are(script: Path) -> None:
    assert told(await exported("--slurm", str(script), "--share", "3,2,1"))["members"] == 3
    with pytest.raises(TandemError, match="--share does not accept"):
        await exported("--slurm", str(script), "--share", "a,b")


@pytest.fixture
def node(script: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedNode:
    """It has a run of the script, with fixed shares."""
    plan = plan_of()
    members = tuple(
        structs.replace(each, share=share) for each, share in zip(plan.members, (48, 16), strict=True)
    )
    plan = structs.replace(plan, members=members, balance=False, seed=5, arguments=("--epochs", "2"))
    entry = RunEntry(run=RUN, started_s=1.0, script="train.py", source=str(script), phase=Finished())
    node = ScriptedNode()
    node.answers[GetRun] = RunDetails(entry=entry, plan=plan)

    @asynccontextmanager
    async def connect(_: object) -> AsyncIterator[NodeConnection]:
        yield NodeConnection(node, own=False)

    monkeypatch.setattr(command_line, "connect", connect)
    return node


@pytest.mark.parametrize("launcher", ["slurm", "kubernetes", "ray"])
async def test_an_earlier_run_is_exported_as_it_was(
    node: ScriptedNode, script: Path, launcher: Launcher
) -> None:
    await exported(f"--{launcher}", "--again", RUN)
    assert node.commands == [GetRun(run=RUN, points=False)]
    member = command_line.read(command_of(launcher, script.parent / f"train-{launcher}")[1:])
    assert (member.seed, member.share, member.script_arguments) == (5, "48,16", ("--epochs", "2"))


async def test_what_is_said_replaces_what_the_run_had(node: ScriptedNode, script: Path) -> None:
    await exported("--slurm", "--again", RUN, "--members", "4", "--seed", "9", "--", "--epochs", "3")
    words = command_of("slurm", script.parent / "train-slurm")
    member = command_line.read(words[1:])
    assert (member.seed, member.script_arguments) == (9, ("--epochs", "3"))
    assert member.share == "", "shares of two members say nothing of four"


async def test_another_program_and_image_may_be_named(script: Path) -> None:
    await exported("--kubernetes", str(script), "--program", "python -m tandem_laptops", "--image", "me/it:1")
    (container,) = pod(script.parent / "train-kubernetes")["containers"]
    assert container["image"] == "me/it:1"
    assert container["command"][:4] == ["python", "-m", "tandem_laptops", "member"]


@pytest.mark.cluster
@pytest.mark.timeout(3 * LIMIT_S)
async def test_the_kubernetes_jobs_environment_played_back_to_two_processes(
    script: Path, tmp_path: Path
) -> None:
    """Everything a pod is given except its host names, which nothing resolves here, and the volume's
    place."""
    script.write_text(SCRIPT)
    program = f"{sys.executable} -m tandem_laptops"
    words = ("--seed", "7", "--share", "48,16", "--program", program, "--", "3", "0")
    await exported("--kubernetes", str(script), *words)
    folder = script.parent / "train-kubernetes"
    (container,) = pod(folder)["containers"]
    environ = {each["name"]: each.get("value", "") for each in container["env"]}
    environ["TANDEM_SECRET"] = yaml.safe_load((folder / "secret.yaml").read_text())["stringData"]["secret"]
    (port,) = free_ports(1)
    environ["TANDEM_HOST"] = f"127.0.{{index}}.1:{port}"
    job = Job(
        [word.replace("/tandem/", f"{tmp_path}/") for word in container["command"]],
        [{**environ, "JOB_COMPLETION_INDEX": str(index)} for index in range(2)],
    )
    first, second = job.ends()
    assert first == second != ""
    assert (tmp_path / "trained" / "model.keras").is_file()
