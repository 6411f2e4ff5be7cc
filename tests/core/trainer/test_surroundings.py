"""A script's surroundings are the same on all members, or the difference is reported."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import msgspec
import pytest

from core.vocabulary.errors import TandemError
from core.vocabulary.trainer_messages import Said
from tests.core.trainer.attended import Attended, cluster, keys_for


@pytest.mark.cluster
@pytest.mark.timeout(600)
@pytest.mark.parametrize("shares", [(48, 16), pytest.param((40, 16, 8), marks=pytest.mark.complete)], ids=str)
async def test_members_find_the_same_order_of_strings_and_folders_time_and_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shares: tuple[int, ...]
) -> None:
    """Each laptop's disk has another order, and its user another time zone and language."""
    names, found = [f"file{number}" for number in range(40)], []
    trainers = []
    keys, tasks = keys_for(len(shares)), cluster(chief=1, worker=len(shares) - 1)
    for rank, (task, config) in enumerate(tasks.items()):
        folder = tmp_path / task
        folder.mkdir()
        for name in names if rank else reversed(names):
            (folder / name).touch()
        found.append([path.name for path in folder.iterdir()])
        monkeypatch.setenv("PYTHONHASHSEED", str(rank + 1))
        monkeypatch.setenv("TZ", ("Europe/Berlin", "Asia/Tokyo", "America/Lima")[rank])
        monkeypatch.setenv("LC_ALL", ("C.UTF-8", "POSIX", "POSIX")[rank])
        order: dict[str, Any] = {
            "tf_config": config,
            "rank": rank,
            "shares": shares,
            "exchange": keys[rank],
        }
        script = "looks_around.py"
        monkeypatch.setenv("LOOKED_AT", str(folder))
        trainer = Attended(tmp_path / f"{rank}.log", task=task, script=script, **order)
        await trainer.wait(partial(len, trainer.reports))  # it has the environment made for it
        trainers.append(trainer)
    assert all(listed != sorted(names) for listed in found), "the disk sorts by itself: nothing is shown"
    exits = await asyncio.gather(*(trainer.exit() for trainer in trainers))
    assert [exit.reason for exit in exits] == ["finished"] * len(shares), exits
    (digest,) = {exit.weights_sha256 for exit in exits}
    chief, *workers = (
        trainer.text().replace("\n", "").replace(str(tmp_path / task), "")
        for trainer, task in zip(trainers, tasks, strict=True)
    )
    assert digest and all(worker == chief for worker in workers)
    assert f"listdir {sorted(names)}" in chief and f"scandir {sorted(names)}" in chief
    assert "time 11:00" in chief and "language C.UTF-8" in chief
    said = [
        [each.words for each in trainer.reports if isinstance(each, Said) and "sorts them by" in each.words]
        for trainer in trainers
    ]
    assert [words.split(" lists")[0] for words in said[0]] == ["looks_around.py, line 17,"]
    assert not any(said[1:]), "once"


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("names = os.listdir(place)", True),
        ("paths = [path for path in Path(place).glob('*.txt')]", True),
        ("names = sorted(os.listdir(place))", False),
        ("count = len(os.listdir(place))", False),
    ],
)
def test_a_script_that_relies_on_the_order_of_files_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, told: bool
) -> None:
    import tensorflow as tf
    from tensorflow.python.lib.io import file_io

    from core.trainer import surroundings

    for owner, name in (
        (tf.io.gfile, "listdir"),
        (tf.io.gfile, "glob"),
        (file_io, "list_directory_v2"),
        (file_io, "get_matching_files_v2"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))  # to be restored
    (tmp_path / "a.txt").touch()
    (tmp_path / "b.txt").touch()
    monkeypatch.setattr(os, "listdir", lambda path: ["b.txt", "a.txt"])
    with os.scandir(tmp_path) as entries:
        listed = MagicMock()
        listed.__iter__.return_value = sorted(entries, key=lambda entry: entry.name, reverse=True)
    monkeypatch.setattr(os, "scandir", lambda path: listed)
    said: list[str] = []
    surroundings.sort_folders(tmp_path, said.append)
    script = tmp_path / "train.py"
    script.write_text(f"import os\nfrom pathlib import Path\n{line}\n")
    exec(compile(script.read_text(), str(script), "exec"), {"place": str(tmp_path)})
    assert [words.startswith("train.py, line 3, lists files") for words in said] == [True] * told


def others_with(whole: bytes = b"", **chief: Any) -> Any:
    """This process is the worker; the chief's surroundings are given, or its whole message."""
    from core.trainer.exact.members.collectives import NoCollectives

    class Others(NoCollectives):
        names = ("Anna's laptop", "Ben's laptop")

        def gather_bytes(self, data: bytes, what: str = "", most: int = 0) -> list[bytes]:
            return [whole or msgspec.msgpack.encode({**msgspec.msgpack.decode(data), **chief}), data]

    return Others(rank=1, members=2)


def agree(others: Any, say: Callable[[str], None]) -> None:
    from core.trainer import surroundings

    surroundings.agree(others, say)


@pytest.mark.real
def test_what_cannot_be_made_equal_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    said: list[str] = []
    agree(others_with(zone="", offsets=[1, 2, 3, 4], encoding="cp1252"), said.append)
    assert len(said) == 2
    assert "Local times differ" in said[0] and "same time zone" in said[0]
    assert "cp1252 on the chief" in said[1] and "encoding='utf-8'" in said[1]


@pytest.mark.real
def test_another_order_of_strings_in_sets_is_refused() -> None:
    with pytest.raises(TandemError) as refused:
        agree(others_with(order=1, python="3.10.1"), print)
    assert refused.value.code == "order-differs" and "on the chief 3.10.1" in refused.value.what


HARMFUL: list[dict[str, Any]] = [
    {"locale": {"LD_PRELOAD": "/tmp/evil.so"}},
    {"locale": {"PYTHONWARNINGS": "error::evil.Evil"}},
    {"locale": {"LC_MINE": "C"}},
    {"locale": {"LANG": "/tmp/evil"}},
    {"locale": {"LANG": "C\n"}},
    {"locale": {"LANGUAGE": "de:../../tmp/evil"}},
    {"locale": {"LC_ALL": "C" * 1000}},
    {"locale": {"LANG": 3}},
    {"locale": []},
    {"zone": "/tmp/evil"},
    {"zone": ":/tmp/evil"},
    {"zone": "Europe/../../tmp/evil"},
    {"zone": "../tmp/evil"},
    {"zone": "Europe//Berlin"},
    {"zone": "UTC\n"},
    {"zone": "U" * 1000},
    {"offsets": [0] * 1000},
    {"offsets": [10**9]},
    {"order": "0"},
    {"python": "3.11.7; rm"},
    {"encoding": "utf-8\x1b[2J"},
    {"encoding": "u" * 100},
    {"environment": {"BROWSER": "evil"}},
]


@pytest.mark.real
@pytest.mark.parametrize("told", HARMFUL, ids=str)
def test_invariant_what_tandem_never_sends_changes_nothing_here_and_names_its_sender(
    told: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    before, others = dict(os.environ), others_with(**told)
    with pytest.raises(TandemError) as refused:
        agree(others, print)
    assert refused.value.what.startswith("Anna's laptop sent")
    assert others.failure is refused.value, "a script that catches it must not go on"
    assert dict(os.environ) == before


@pytest.mark.real
def test_an_older_tandem_with_another_message_is_refused_with_a_reason() -> None:
    whole = b'{"order": 1, "python": "3.11.7", "locale": {}}'
    with pytest.raises(TandemError) as refused:
        agree(others_with(whole), print)
    assert refused.value.what.startswith("Anna's laptop") and "same version of Tandem" in refused.value.fix


ZONES = [
    "Europe/Berlin",
    "America/Argentina/Buenos_Aires",
    "Etc/GMT+5",
    "posix/America/North_Dakota/New_Salem",
    "EST5EDT",
    "UTC0",
    "<+0330>-3:30",
    "CET-1CEST,M3.5.0,M10.5.0/3",
    "IST-1GMT0,M10.5.0,M3.5.0/1:00:00",
]
LOCALES = ["", "C", "POSIX", "C.UTF-8", "UTF-8", "de_DE", "de_DE.UTF-8", "ca_ES@valencia", "sr_RS.utf8@latin"]


@pytest.mark.real
def test_real_time_zones_and_locales_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TZ", "LANG", "LC_ALL", "LANGUAGE"):
        monkeypatch.delenv(name, raising=False)  # restored at the end, whatever becomes of them
        monkeypatch.setenv(name, "C")
    for zone in ZONES:
        agree(others_with(zone=zone, locale={}), lambda words: None)
        assert os.environ["TZ"] == zone
    for value in LOCALES:
        agree(others_with(locale={"LC_ALL": value, "LANGUAGE": "de_AT:de"}), lambda words: None)
        assert os.environ["LC_ALL"] == value and os.environ["LANGUAGE"] == "de_AT:de"
        assert "LANG" not in os.environ
    monkeypatch.undo()
    time.tzset()


@pytest.mark.real
def test_values_that_others_would_refuse_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A laptop with its own odd variables does no harm to others, and is not treated as harmful."""
    monkeypatch.setenv("LANG", "/opt/locales/de")
    monkeypatch.setenv("LC_MINE", "C")
    monkeypatch.setenv("TZ", ":/usr/share/zoneinfo/Asia/Tokyo")
    others = others_with()
    agree(others, lambda words: None)
    assert os.environ["LC_MINE"] == "C" and "LANG" not in os.environ
    assert os.environ["TZ"] == ":/usr/share/zoneinfo/Asia/Tokyo"
