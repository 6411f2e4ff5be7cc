"""One member of a run that a launcher started: its requirements, and the same weights as any other way."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import psutil
import pytest

from app.cli import command_line, member
from app.cli.screen import Screen
from core.exchange.membership import Membership
from core.project import checkpoint_store
from core.vocabulary.errors import TandemError
from tests.core.project.making import write
from tests.core.trainer.attended import Attended, cluster, free_ports, keys_for

ROOT = Path(__file__).parents[3]
LIMIT_S = 480.0
SCRIPT = """\
import sys
import time
from pathlib import Path
from typing import Self

import keras
import numpy as np

rows = np.random.default_rng(1).normal(size=(128, 8)).astype("float32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")


def tell(epoch, logs):
    print("ended", epoch + 1, flush=True)
    time.sleep(float(sys.argv[2]))


def validate(logs):
    print("validates", flush=True)
    time.sleep(float(sys.argv[3]))


told = keras.callbacks.LambdaCallback(on_epoch_end=tell)
told.on_test_begin = validate
more = {"validation_data": (rows[:64], rows[:64].sum(1))} if sys.argv[3:] else {}
model.fit(rows, rows.sum(1), batch_size=64, epochs=int(sys.argv[1]), verbose=0, callbacks=[told], **more)
Path("written.txt").write_text("by " + str(Path.cwd()))
"""
LOOP = """\
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    mean = tf.Variable(0.0)
rows = tf.data.Dataset.range(64).map(lambda row: tf.cast(row, tf.float32)).batch(64).repeat(2)


@tf.function
def step(rows):
    return tf.reduce_sum(rows - mean) / 64


means = []
for batch in strategy.experimental_distribute_dataset(rows):
    mean.assign_add(strategy.reduce("SUM", strategy.run(step, args=(batch,)), axis=None))
    means.append(mean.numpy())
print("of", strategy.num_replicas_in_sync, "replicas:", *means)
"""
TWO = Membership("run", 0, ("127.0.0.1:1111", "127.0.0.1:2222"))


@pytest.mark.parametrize(("text", "shares"), [("", (1, 1)), ("48,16", (48, 16)), ("1,0", (1, 0))])
def test_shares_are_by_rank(text: str, shares: tuple[int, ...]) -> None:
    assert member._shares(text, 2) == shares


@pytest.mark.parametrize("text", ["48", "1,2,3", "0,0", "-1,2"])
def test_shares_that_do_not_fit_the_members_are_refused(text: str) -> None:
    with pytest.raises(TandemError, match="does not give each of 2 members"):
        member._shares(text, 2)


def test_shares_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(TandemError, match="--share does not accept 'a,b'"):
        member._shares("a,b", 2)


def test_without_a_secret_nobody_meets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TANDEM_SECRET", raising=False)
    short = tmp_path / "short"
    short.write_bytes(b"tooshort")
    short.chmod(0o600)
    for path in (None, str(tmp_path / "missing"), str(short)):
        with pytest.raises(TandemError) as failure:
            member._keys(path, TWO)
        assert failure.value.code == "no-secret" and "openssl rand" in failure.value.fix
    monkeypatch.setenv("TANDEM_SECRET", "s" * 64)
    assert len(member._keys(None, TWO).certificates) == 2


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX'")
def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"s" * 64)
    path.chmod(0o644)
    with pytest.raises(TandemError):
        member._keys(str(path), TWO)


def test_members_are_told_the_same_but_for_their_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TANDEM_SECRET", "s" * 64)
    told = {
        "secret": None,
        "share": "3,1",
        "seed": 5,
        "wire": "bf16",
        "away_s": 90.0,
        "save": "out",
        "meet": 9.0,
    }
    arguments = Namespace(**told, checkpoints=str(tmp_path), script_arguments=("--epochs", "2"))
    script = tmp_path / "train.py"
    first, second = (
        member._order(arguments, Membership("run", rank, TWO.addresses), script, tmp_path) for rank in (0, 1)
    )
    for name in ("run", "script", "arguments", "shares", "seed", "options", "resume", "meet_timeout_s"):
        assert getattr(first, name) == getattr(second, name)
    assert (first.options.wire, first.options.away_s) == ("bf16", 90.0)
    assert (first.task, second.task) == ("chief:0", "worker:0")
    assert first.keep and not second.keep, "the first member writes what there is to keep"
    assert first.checkpoints != second.checkpoints
    assert first.exchange is not None and second.exchange is not None
    assert first.exchange.certificates == second.exchange.certificates
    assert second.peers == {"chief:0": "member 0 at 127.0.0.1:1111"}


def test_a_job_exported_for_tensorflows_collectives_is_refused_by_name() -> None:
    """Exported by an older version."""
    arguments = command_line.read(["member", "train.py", "--exchange", "tensorflow"])
    with pytest.raises(TandemError) as failure:
        asyncio.run(member.member(arguments, Screen()))
    assert "no longer connect by tensorflow" in failure.value.what
    assert "--secret FILE" in failure.value.fix


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_secret_made_as_the_page_says_is_one(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    (command,) = (line for line in page.splitlines() if line.startswith("openssl "))
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True, timeout=60)
    assert len(member._keys(str(tmp_path / "secret"), TWO).certificates) == 2
    with pytest.raises(TandemError) as failure:
        member._keys(None, TWO)
    assert command in failure.value.fix


class Job:
    """Both members of a run, started like a launcher does: the same command, different environments."""

    def __init__(self, command: Sequence[str], environs: Sequence[Mapping[str, str]]) -> None:
        """``command``: of ``tandem member``, which also reports as JSON."""
        at = command.index("member")
        self.processes = [
            subprocess.Popen(
                [*command[: at + 1], "--json", *command[at + 1 :]],
                cwd=ROOT,
                env={**os.environ, **environ},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for environ in environs
        ]
        self.said = ["", ""]
        self._limit = threading.Timer(LIMIT_S, self.kill)
        self._limit.start()

    @classmethod
    def of(cls, place: Path, configs: Mapping[str, str], *arguments: str) -> Self:
        """Configured by TF_CONFIG alone."""
        secret = place / "secret"
        secret.write_bytes(b"0123456789abcdef" * 4)
        secret.chmod(0o600)
        command = [sys.executable, "-m", "tandem_laptops", "member", str(place / "project" / "train.py")]
        command += ["--secret", str(secret), "--seed", "7", "--share", "48,16", *arguments]
        return cls(command, [{"TF_CONFIG": text, "TANDEM_RUN": "job"} for text in configs.values()])

    def kill(self) -> None:
        for process in self.processes:
            process.kill()

    def wait_said(self, words: str) -> None:
        """Waits for the first member to say it."""
        output = self.processes[0].stdout
        assert output is not None
        for line in output:
            self.said[0] += line
            if words in line:
                return
        raise AssertionError(self.said[0])

    def ends(self, status: int = 0) -> list[str]:
        """Waits for the ends. Returns the weights' digests, by rank."""
        try:
            for rank, process in enumerate(self.processes):
                self.said[rank] += process.communicate()[0]
            for rank, process in enumerate(self.processes):
                assert process.returncode == status, self.said[rank]
            last = [json.loads(said.splitlines()[-1]) for said in self.said if said]
            return [str(told["weights_sha256"]) for told in last]
        finally:
            self._limit.cancel()
            self.kill()


def with_script(place: Path) -> Path:
    (place / "project").mkdir()
    (place / "project" / "train.py").write_text(SCRIPT)
    return place


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return with_script(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What ten epochs end with that nobody stops."""
    place = with_script(tmp_path_factory.mktemp("whole"))
    return Job.of(place, cluster(chief=1, worker=1), "--", "10", "0").ends()


def test_a_members_copy_has_what_its_arguments_name(tmp_path: Path) -> None:
    """Also if the script only writes it: an earlier job may have left what this one starts with."""
    project = tmp_path / "project"
    write(project, {"train.py": "import keras\nmodel.save('m.keras')\n", "m.keras": "a model", "x.csv": "1"})
    script = project / "train.py"
    assert member._folder(script, (), 0, tmp_path / "a") == project
    copy = member._folder(script, (), 1, tmp_path / "b")
    assert sorted(path.name for path in copy.iterdir()) == ["train.py", "x.csv"]
    copy = member._folder(script, ("--from=m.keras",), 1, tmp_path / "c")
    assert sorted(path.name for path in copy.iterdir()) == ["m.keras", "train.py", "x.csv"]


def workers_alone() -> dict[str, str]:
    spec = {"worker": [f"127.0.0.1:{port}" for port in free_ports(2)]}
    return {
        str(index): json.dumps({"cluster": spec, "task": {"type": "worker", "index": index}})
        for index in (0, 1)
    }


@pytest.mark.cluster
@pytest.mark.timeout(2 * LIMIT_S)
async def test_two_members_of_a_launched_run_train_as_two_laptops_do(place: Path) -> None:
    first, second = Job.of(place, workers_alone(), "--save", str(place / "out"), "--", "3", "0").ends()
    assert first == second != ""
    assert (place / "out" / "model.keras").is_file()
    written = (place / "project" / "written.txt").read_text()
    assert written == f"by {place / 'project'}", "what the first writes stays; the other wrote into its copy"

    configs, keys = cluster(chief=1, worker=1), keys_for(2)
    trainers = [
        Attended(
            place / f"{rank}.log",
            task=task,
            tf_config=configs[task],
            rank=rank,
            shares=(48, 16),
            seed=7,
            exchange=keys[rank],
            folder=str(place / "project"),
            script="train.py",
            arguments=("3", "0"),
        )
        for rank, task in enumerate(configs)
    ]
    assert {(await trainer.exit()).weights_sha256 for trainer in trainers} == {first}


@pytest.mark.cluster
@pytest.mark.timeout(2 * LIMIT_S)
@pytest.mark.parametrize("strategy", ["MirroredStrategy", "MultiWorkerMirroredStrategy"])
def test_members_are_the_replicas_of_a_mirrored_loop(place: Path, strategy: str) -> None:
    (place / "project" / "train.py").write_text(LOOP.replace("MirroredStrategy", strategy))
    job = Job.of(place, workers_alone())
    job.ends()
    for said in job.said:
        assert "of 2 replicas: 31.5 31.5" in said, "the mean of all rows, on both members"
        assert "--share ignored: the script has a custom training loop" in said
        assert "Nothing was shared" not in said


@pytest.mark.cluster
def test_a_member_that_never_comes_is_named_with_its_rank_host_and_port(place: Path) -> None:
    first, absent = cluster(chief=1, worker=1).values()
    port = json.loads(absent)["cluster"]["worker"][0]
    job = Job.of(place, {"chief:0": first}, "--meet", "3", "--", "1", "0")
    job.ends(status=1)
    problem = json.loads(job.said[0].splitlines()[-1])["problem"]
    assert f"member 1 (at {port}," in problem["what"]


@pytest.mark.cluster
@pytest.mark.timeout(2 * LIMIT_S)
def test_a_member_that_was_killed_is_given_up_by_name_within_the_limit(place: Path) -> None:
    configs = cluster(chief=1, worker=1)
    job = Job.of(place, configs, "--wait-for-away", "0.25", "--", "1000", "0")
    job.wait_said("ended 1")
    killed = psutil.Process(job.processes[1].pid)
    for process in (killed, *killed.children(recursive=True)):
        process.kill()
    first, _ = (process.communicate(timeout=LIMIT_S)[0] for process in job.processes)
    assert [process.returncode for process in job.processes] == [1, -signal.SIGKILL], first
    address = json.loads(configs["worker:0"])["cluster"]["worker"][0]
    assert f"Nothing received from member 1 at {address} for" in first.splitlines()[-2]
    problem = json.loads(first.splitlines()[-1])["problem"]
    assert problem["code"] == "member-lost"
    (silent_s,) = re.findall(rf"from member 1 at {address} for (\d+) s", problem["what"])
    assert 15 <= int(silent_s) < 30, "as long as it was told to wait, and the next look"


@pytest.mark.cluster
@pytest.mark.timeout(3 * LIMIT_S + 60)
@pytest.mark.parametrize(("told", "within"), [("members", ""), ("all", ""), ("members", "a validation")])
def test_sigterm_ends_in_a_checkpoint_and_the_next_start_goes_on_from_it(
    told: str, within: str, place: Path, whole: list[str]
) -> None:
    """SIGTERM as Kubernetes sends it to the members, and Slurm to every process of a job; at any time,
    however short the training was until then."""
    kept = ("--checkpoints", str(place / "kept"))
    slowly = ("0", "2") if within else ("1",)
    job = Job.of(place, cluster(chief=1, worker=1), *kept, "--", "10", *slowly)
    if within:
        job.wait_said("ended 1")
        job.wait_said("validates")
    else:
        job.wait_said("ended 2")
    members = [psutil.Process(process.pid) for process in job.processes]
    trainers = [each for member in members for each in member.children(recursive=True)]
    assert len(trainers) == 2
    for each in (trainers if told == "all" else []) + members:
        each.send_signal(signal.SIGTERM)
    job.ends(status=130)
    assert "ended 10" not in job.said[0], "it was stopped before its end"
    newest = checkpoint_store.newest(place / "kept" / "rank-0")
    assert newest is not None
    if within:
        moment = newest.head.moment
        assert (moment.epoch, moment.batch) == (1, 2), "all steps of the epoch that was being validated"
    again = Job.of(place, cluster(chief=1, worker=1), *kept, "--", "10", *(("0", "0") if within else ("0",)))
    assert again.ends() == whole
    began = re.findall(r"ended (\d+)", again.said[0])[0]
    assert int(began) > 1, "it went on, and did not begin anew"
