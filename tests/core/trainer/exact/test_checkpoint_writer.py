"""The thread that writes checkpoints: one at a time, never in the training's way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.core.trainer.exact.test_keras_private import run

CODE = """
import json, pathlib, sys, threading
import numpy as np
from core.cluster.plan import Moment
from core.run import checkpoints
from core.trainer.exact import checkpoint

base, told = pathlib.Path(sys.argv[1]), {}
said = []
writer = checkpoint.Writer(base / "kept", said.append, None)
writer.add_finished(0, {"model": [np.arange(3.0)]})
told["wrote"] = writer.write(Moment(step=1, fit=1), (1,), None, wait=True)
go = threading.Event()
original = checkpoints.write

def slow(*arguments):
    go.wait()
    return original(*arguments)

checkpoints.write = slow
told["second"] = writer.write(Moment(step=2, fit=1), (1,), {"epoch": 4}, wait=False)
told["while busy"] = writer.write(Moment(step=3, fit=1), (1,), {"epoch": 5}, wait=False)
go.set()
told["waits"] = writer.write(Moment(step=4, fit=1), (1,), {"epoch": 6}, wait=True)
found = checkpoints.newest(base / "kept")
told["step"] = found.head.moment.step
told["files"] = sorted(file.name for file in found.head.files)
told["now"] = checkpoint.read(found, "now")
told["ended"] = checkpoint.read(found, "fit-0")["model"][0].tolist()
told["none"] = checkpoint.read(found, "fit-7")
told["said"] = list(said)
goes_on = checkpoint.Writer(base / "next", said.append, found)
goes_on.write(Moment(step=5, fit=1), (1,), {"epoch": 7}, wait=True)
told["carried"] = sorted(file.name for file in checkpoints.newest(base / "next").head.files)
(base / "file").write_text("")
full = checkpoint.Writer(base / "file" / "kept", said.append, None)
full.write(Moment(step=6), (1,), {}, wait=True)
told["refused"] = full.write(Moment(step=7), (1,), {}, wait=True)
told["trouble"] = said
print(json.dumps(told))
"""


@pytest.mark.cluster
def test_a_writer_keeps_what_it_can_and_says_what_it_cannot(tmp_path: Path) -> None:
    told = json.loads(run(["-c", CODE, str(tmp_path)]).splitlines()[-1])
    assert (told["wrote"], told["second"], told["while busy"], told["waits"]) == (True, True, False, True)
    assert told["step"] == 4 and told["now"] == {"epoch": 6} and told["none"] is None
    assert told["files"] == ["fit-0.bin", "fit-0.json", "now.bin", "now.json"] == told["carried"]
    assert told["ended"] == [0.0, 1.0, 2.0] and told["said"] == []
    assert told["refused"] is False
    assert len(told["trouble"]) == 1 and told["trouble"][0].startswith("No checkpoints are kept: ")
