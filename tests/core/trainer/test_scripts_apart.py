"""Scripts that differ on one member: reported on both sides, with the actual cause, and soon.

Each has two complete trainers (``many_runs``), which connect over TLS like laptops.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from core.exchange import problems
from core.vocabulary.phases import Exit
from core.vocabulary.trainer_messages import Train
from tests.core.trainer.attended import SCRIPTS, cluster, keys_for

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

NAMED_S = 30.0
LOADED_S = 240.0
NAMES = ("anna", "ben")
NOBODYS = 9
"""A port without a listener."""


@dataclass
class Pair:
    """Two persistent members: ``run`` gives them one run after the other."""

    processes: list[subprocess.Popen[bytes]]
    folders: list[Path]
    runs: int = 0

    def run(self, how: str, shut: int | None = None) -> tuple[list[Exit], float]:
        """Both exits, and after how many seconds. ``shut``: nobody can call this member."""
        keys = keys_for(2)
        for rank, (task, config) in enumerate(cluster(chief=1, worker=1).items()):
            if shut is not None and shut != rank:
                at = json.loads(config)["cluster"]
                at["worker" if shut else "chief"] = [f"127.0.0.1:{NOBODYS}"]
                config = json.dumps({"cluster": at, "task": json.loads(config)["task"]})
            order = Train(
                run=f"run-{self.runs}",
                task=task,
                folder=str(SCRIPTS),
                script="goes_apart.py",
                arguments=(how,),
                tf_config=config,
                rank=rank,
                shares=(1, 1),
                exchange=keys[rank],
                names=NAMES,
                meet_timeout_s=LOADED_S,
            )
            pipe = self.processes[rank].stdin
            assert pipe is not None
            pipe.write(msgspec.json.encode(order) + b"\n")
            pipe.flush()
        left = [folder / f"{self.runs}.exit" for folder in self.folders]
        began_s = time.monotonic()
        limit_s = NAMED_S if self.runs else LOADED_S
        self.runs += 1
        while not all(each.exists() for each in left):
            assert time.monotonic() < began_s + limit_s, self.words()
            assert all(process.poll() is None for process in self.processes), self.words()
            time.sleep(0.05)
        took_s = time.monotonic() - began_s
        return [msgspec.json.decode(each.read_bytes(), type=Exit) for each in left], took_s

    def words(self) -> str:
        return "\n".join((folder / "log").read_text()[-4000:] for folder in self.folders)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folders = [tmp_path_factory.mktemp(name) for name in NAMES]
    quiet = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONHASHSEED": "0"}
    environment = {**os.environ, **quiet}
    with ExitStack() as stack:
        processes = []
        for folder in folders:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.core.trainer.many_runs", str(folder)],
                stdin=subprocess.PIPE,
                stdout=stack.enter_context((folder / "log").open("wb")),
                stderr=subprocess.STDOUT,
                env=environment,
            )
            stack.callback(_end, process)
            processes.append(process)
        found = Pair(processes, folders)
        exits, _ = found.run("caught by all")
        assert [exit.reason for exit in exits] == ["finished"] * 2, found.words()
        yield found


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin:
        process.stdin.close()


CASES = {
    "model": (
        " in fit 1, epoch 1, from batch 1 on:",
        "anna wants a model of 51 numbers in 6 variables (",
        "ben wants a model of 57 numbers in 6 variables (",
    ),
    "batches": (
        "anna wants the first batch, of 16 rows of 4 batches of 16 rows (float32 [4], float32 [1])",
        "ben wants the first batch, of 16 rows of 5 batches of 16 rows (float32 [4], float32 [1])",
    ),
    "batches of a generator": ("anna wants gradients of 16 rows", "ben wants to decide whether to stop"),
    "rows of a generator": (
        "anna wants the first batch, of 16 rows of some batches (",
        "ben wants the first batch, of 12 rows of some batches (",
    ),
    "shape": ("2 batches of 16 rows (float32 [8, 8, 1]", "2 batches of 16 rows (float32 [10, 10, 1]"),
    "skipped": (
        "anna wants to begin in fit 1, epoch 1, from",
        "ben wants the first batch, ",
        " in evaluate 1.",
    ),
    "skipped one of two": ("anna wants a model of 51 numbers", "ben wants a model of 99 numbers"),
    "caught in a callback": (
        "anna wants to decide whether to stop in fit 1, epoch 1, from batch 5 on;",
        "ben wants to begin in fit 2, epoch 1, from batch 1 on, after fit 1 ended by ValueError.",
    ),
    "caught in a step": (
        "anna wants the results (steps: 1) in fit 1, epoch 1, from batch 1 on;",
        "ben wants to begin in fit 2, epoch 1, from batch 1 on, after fit 1 ended by InvalidArgumentError.",
    ),
    "caught while gradients are handed over": (
        "anna wants gradients of 16 rows, part 1 of 2 in fit 1, epoch 1, from batch 1 on;",
        "ben wants to begin in fit 2, epoch 1, from batch 1 on, after fit 1 ended by InvalidArgumentError.",
    ),
    "everything is caught": ("anna wants a model of 57 numbers", "ben wants a model of 63 numbers"),
    "ends early": (
        "anna wants to begin in fit 2",
        "ben wants the end of the script in its own code, step 8.",
    ),
    "predict": ("anna wants predictions of 32 rows; ben wants predictions of 24 rows.",),
}
"""Both members' messages, by the difference of one (``scripts/goes_apart.py``)."""


@pytest.mark.parametrize("how", CASES)
def test_each_side_names_what_each_member_wants(pair: Pair, how: str) -> None:
    exits, _ = pair.run(how)
    for exit in exits:
        assert exit.reason == "script-error" and exit.problem is not None, pair.words()
        assert exit.problem.code == problems.MISMATCH, exit
        assert exit.problem.what.startswith("The script went different ways")
        for words in CASES[how]:
            assert words in exit.problem.what
        assert "went away" not in str(exit.problem)
    assert len({exit.problem.what for exit in exits if exit.problem}) == 1


def test_who_ended_while_the_other_was_in_its_own_code_is_named_when_that_goes_on(pair: Pair) -> None:
    (anna, ben), took_s = pair.run("ends early beside one in its own code")
    assert took_s > 10.0, "ben did not wait longer for anna"
    assert anna.problem is not None
    assert "ben wants the end of the script in its own code, step 8." in anna.problem.what
    assert ben.reason == "finished"


def test_an_error_that_all_catch_alike_is_no_difference(pair: Pair) -> None:
    exits, _ = pair.run("caught by all")
    assert [exit.reason for exit in exits] == ["finished"] * 2, pair.words()
    assert exits[0].weights_sha256 == exits[1].weights_sha256 != ""


@pytest.mark.parametrize("shut", [0, 1])
def test_a_run_trains_where_only_one_of_two_can_be_called(pair: Pair, shut: int) -> None:
    exits, _ = pair.run("caught by all", shut)
    assert [exit.reason for exit in exits] == ["finished"] * 2, pair.words()
    assert exits[0].weights_sha256 == exits[1].weights_sha256 != ""
