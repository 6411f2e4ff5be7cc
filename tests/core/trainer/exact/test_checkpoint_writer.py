"""The checkpoint-writing thread: one at a time, never delaying the training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.supervisor.state import Limits
from core.vocabulary import limits
from tests.core.trainer.exact.keras.test_keras_private import run

CODE = """
import json, pathlib, sys, threading
import numpy as np
from core.vocabulary.plan import Moment
from core.project import checkpoint_store as checkpoints
from core.trainer.exact.resume import writer as checkpoint

base, told = pathlib.Path(sys.argv[1]), {}
said = []
kept = []
writer = checkpoint.Writer(base / "kept", said.append, None, lambda: kept.append(1))
writer.add_finished(0, {"model": [np.arange(3.0)]})
told["wrote"] = writer.write(Moment(step=1, fit=1), (1,), None, wait=True)
go = threading.Event()
original = checkpoints.write

def slow(*arguments, **options):
    go.wait()
    return original(*arguments, **options)

checkpoints.write = slow
told["second"] = writer.write(Moment(step=2, fit=1), (1,), {"epoch": 4}, wait=False)
told["while busy"] = writer.write(Moment(step=3, fit=1), (1,), {"epoch": 5}, wait=False)
go.set()
told["waits"] = writer.write(Moment(step=4, fit=1), (1,), {"epoch": 6}, wait=True)
told["kept"] = len(kept)
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
told["patience"], checkpoint._WAIT_S = checkpoint._WAIT_S, 0.05
go.clear()
slowly = []
stuck = checkpoint.Writer(base / "stuck", slowly.append, None)
told["stuck"] = [stuck.write(Moment(step=8 + each), (1,), {}, wait=True) for each in range(2)]
told["threads"] = [thread.name for thread in threading.enumerate()].count("checkpoint")
told["slowly"] = slowly
threading.Timer(0.3, go.set).start()
checkpoint._WAIT_S = told["patience"]
stuck.end()
told["in the end"] = checkpoints.newest(base / "stuck").head.moment.step
told["after the end"] = stuck.write(Moment(step=10), (1,), {}, wait=True)
print(json.dumps(told))
"""


@pytest.mark.cluster
def test_a_writer_stores_what_it_can_and_reports_what_it_cannot(tmp_path: Path) -> None:
    told = json.loads(run(["-c", CODE, str(tmp_path)]).splitlines()[-1])
    assert (told["wrote"], told["second"], told["while busy"], told["waits"]) == (True, True, False, True)
    assert told["kept"] == 3, "once for each that was written"
    assert told["step"] == 4 and told["now"] == {"epoch": 6} and told["none"] is None
    assert told["files"] == ["fit-0.bin", "fit-0.json", "now.bin", "now.json"] == told["carried"]
    assert told["ended"] == [0.0, 1.0, 2.0] and told["said"] == []
    assert told["refused"] is False
    assert len(told["trouble"]) == 1 and told["trouble"][0].startswith("No checkpoints are kept: ")
    # A Stop waits once, for less than the node does, and never begins a second checkpoint beside a pending
    # one.
    assert told["patience"] < 0.7 * min(Limits().grace_s, limits.STOP_S[0])
    assert told["stuck"] == [False, False] and told["threads"] == 1 and told["in the end"] == 8
    assert all("for a checkpoint, so the training can only be resumed" in words for words in told["slowly"])
    assert len(told["slowly"]) == 2 and told["after the end"] is False


KEEPING = """
import json, pathlib, struct, sys, threading, time
from types import SimpleNamespace
import keras
import numpy as np
from core.vocabulary.errors import TandemError
from core.trainer.exact.patch.callbacks import SharedCallbacks
from core.vocabulary.plan import Moment
from core.project import checkpoint_store as checkpoints
from core.trainer.exact.resume import callback_state, writer as checkpoint
from core.trainer.exact.resume.keeper import Keeper
from core.trainer.exact.interface import Checkpointing
from core.trainer.exact.steps.course import AuditTime

class Host:
    step, epochs, stopping, shares_kept = 5, 1, False, (1, 1)
    audits = AuditTime(steps=7, audited=2, why="it runs eagerly")
    def __init__(self, **said):
        self.said = said
    def from_chief(self, data, read):
        if read.__name__ in ("_generators", "_exactness"):  # told at each checkpoint; not the numbers here
            return read(data)
        self.own = data
        return read(data if self.chief is None else self.chief)
    def say_once(self, words, difference=False):
        self.said[words] = difference
        difference or said.append(words)
    def flush(self, model, *, whole):
        pass

base, told, said, host = pathlib.Path(sys.argv[1]), {}, [], Host(differs=True, falls_back=False)
tree = {"epoch": 1, "random": {"now": {"own": {}}}}
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
model.train_function = SimpleNamespace(unaudited="shared", costs=SimpleNamespace(met_every=32), sent_bits=8)

def fit(keeper, joins=True):
    kept = keeper.begin(model, [])
    kept.under_way = True
    kept.over()
    keeper.ended(kept, keras.callbacks.History())
    joins and keeper._writer._thread and keeper._writer._thread.join()

def newest(folder):
    found = checkpoints.newest(folder)
    return None if found is None else found.head.moment.fit

never = Keeper(Checkpointing(base / "never", every_s=1e9), host)
never._kept_s = -1e9
host.chief = b""
fit(never)
told["own clock"], told["not the chief's"] = host.own.decode(), newest(base / "never")
always = Keeper(Checkpointing(base / "always", every_s=1e9), host)
host.chief = b"due"
fit(always)
told["not the own clock"], told["the chief's"] = host.own.decode(), newest(base / "always")
head, later = checkpoints.newest(base / "always").head, Host()
told["exactness"] = [head.exactness.told, head.exactness.audits.steps, head.exactness.unaudited]
resume = pathlib.Path(checkpoints.newest(base / "always").folder)
resumed = Keeper(Checkpointing(base / "later", resume=resume), later)
told["said again"], audits = later.said, resumed.exactness.audits
told["met"] = [(each.met_every, each.sent_bits) for each in (head.exactness, resumed.exactness)]
told["audits"] = [audits.steps, audits.audited, audits.why]
told["unaudited"] = [resumed.begin(each, []).unaudited for each in (model, model, keras.Sequential(), model)]

then, values = checkpoint.capture(model), checkpoint.held(model)
for variable in model.variables:
    variable.value.assign_add(keras.ops.ones_like(variable.value))  # in its place, if nobody has it
told["held values"] = [np.array_equal(*pair) for pair in zip(then, checkpoint.arrays(values))]
told["new values"] = [np.array_equal(*pair) for pair in zip(then, checkpoint.capture(model))]

stop = Keeper(Checkpointing(base / "stop", every_s=1e9), host)
stop.stopped()
host.chief = b""
fit(stop)
told["before the stop"] = newest(base / "stop")
stop.stopped()
told["after the stop"], host.chief = newest(base / "stop"), b"due"

def slow(*arguments, **options):
    go.wait()
    return original(*arguments, **options)

go, original = threading.Event(), checkpoints.write
checkpoints.write = slow
busy = Keeper(Checkpointing(base / "busy", every_s=1e9), host)
fit(busy, joins=False)
fit(busy, joins=False)
told["busy at the end of a fit"] = busy._writer.busy
threading.Timer(0.3, go.set).start()
busy.stopped()
told["busy before the stop"] = newest(base / "busy")
go.clear()
checkpoint._WAIT_S, usual_s = 0.05, checkpoint._WAIT_S
fit(busy, joins=False)
fit(busy, joins=False)
busy.write(Moment(step=6, fit=4), tree, wait=True)
told["waited once"] = len(said)
busy.stopped()
told["waited twice"] = len(said)
go.set()
busy.end()
said.clear()
checkpoints.write, checkpoint._WAIT_S = original, usual_s

writer = checkpoint.Writer(base / "failed", said.append, None)
writer.add_finished(1, {"model": [np.arange(3.0)]})
writer.write(Moment(step=9, fit=2), (1,), None, wait=True)
failed = pathlib.Path(checkpoints.newest(base / "failed").folder)
resumed = Keeper(Checkpointing(base / "failed", every_s=1e9, resume=failed), host)
told["left"] = []
for number in range(3):
    kept = resumed.begin(model, [])
    told["left"].append(kept.outcome is not None)
    for step in (10, 11) if number == 0 else ():
        resumed.write(Moment(step=step), tree, wait=True)
told["gone"] = not failed.exists()
again = pathlib.Path(checkpoints.newest(base / "failed").folder)
anew = Keeper(Checkpointing(base / "failed", every_s=1e9, resume=again), host)
host.step, told["anew"] = 77, []
for number in range(2):
    fit(anew)
    found = checkpoints.newest(base / "failed")
    told["anew"].append([found.head.moment.fit, checkpoint.read(found, f"fit-{number}").get("step")])

checkpoints.LIMIT_BYTES = 1_000
large = checkpoint.Writer(base / "large", said.append, None)
large.add_finished(0, {"model": [np.arange(300.0)]})
large.write(Moment(step=1, fit=1), (1,), None, wait=True)
large.add_finished(1, {"model": [np.arange(300.0)]})
told["large"], told["held"] = newest(base / "large"), len(large._finished)
many = checkpoint.Writer(base / "many", said.append, None)
many.add_finished(3, {})
many.add_finished(400, {})
many.add_finished(401, {})
told["many"] = len(many._finished)
told["said"] = said

def logged(epoch, before, append, earlier=None):
    log = base / "log.csv"
    csv, states = keras.callbacks.CSVLogger(str(log), append=append), [["CSVLogger", {}]]
    if earlier is not None:
        log.write_text("epoch,loss\\n" + "".join(f"{number},0.5\\n" for number in earlier))
        callback_state.note_logs([csv])
        states = [callback_state.capture(csv, print)]
    log.write_text("epoch,loss\\n" + "".join(f"{number},0.5\\n" for number in before))
    csv = keras.callbacks.CSVLogger(str(log), append=append)
    callback_state.before_train_begin([csv], epoch, states)
    if earlier is not None:
        assert callback_state.capture(csv, print)[1]["tandem_lines_before"] == (append and 1 + len(earlier))
    return [int(line.split(",")[0]) for line in log.read_text().splitlines()[1:]]

told["logs"] = [
    logged(2, [0, 1, 2, 3], False),
    logged(0, [0, 1], False),
    logged(2, [0, 1, 2, 3, 0, 1, 2, 3], True),
    logged(2, [0, 1, 2, 3, 0, 1], True),
    logged(0, [0, 1, 2, 3], True),
    logged(0, [0, 0, 0, 0], True, [0, 0]),
    logged(0, [0, 1, 0, 1, 2], True, [0, 1]),
    logged(1, [0, 0, 1, 2], True, [0]),
    logged(0, [0, 1], False, [5, 6]),
    logged(0, [0, 1, 2, 0], True, []),
    logged(1, [1, 1], True),
]

cost = Keeper(Checkpointing(base / "cost"), host)
told["first"] = cost.every_s
# Steps of a millisecond, with callbacks of 100 ms by the chief's clock.
told["looks"], now, real = [], [0.0], time.monotonic
time.monotonic = lambda: now[0]
host.chief = None
for portion in range(1, 200):
    now[0] += 0.1
    host.own = b""
    cost.passed(0.001)
    if host.own:
        told["looks"].append([portion, struct.unpack(">I", host.own)[0]])
    if cost.due:
        break
host.chief = struct.pack(">I", 0)

class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch % 2000 == 1999 if kind == "now and then" else now[0] - began > 8:
            now[0] += 3.0

agrees = SimpleNamespace(is_chief=True, any=lambda flags, what: list(flags))
heard = SimpleNamespace(batch=0, steps=None, progress=SimpleNamespace(batch_ended=lambda *_: None))
host.chief, told["late"], model.stop_training = None, {}, False
for kind, hears in (("now and then", False), ("now and then", True), ("for good", True)):
    late, began = Keeper(Checkpointing(base / "late"), host), now[0]
    engine = SimpleNamespace(collectives=agrees, keeper=late, fit=heard, folders=())
    callbacks = SharedCallbacks(engine, [Slow()], model) if hears else Slow()
    for batch in range(30_000):
        now[0] += 0.001
        late.passed(0.0)
        callbacks.on_train_batch_end(batch, {})
        if late.due:
            break
    told["late"][f"{kind}, {hears}"] = now[0] - began

host.chief = struct.pack(">I", 0)
time.monotonic = real
cost._writer.cost_s, cost._captured_s = 0.9, 0.1
host.chief = struct.pack(">d", 60.0)
cost.write(Moment(step=1), tree)
told["told"], told["then"] = struct.unpack(">d", host.own)[0], cost.every_s
cost._writer._thread.join()
told["cost"] = cost._writer.cost_s
told["refused"] = []
for nonsense in (b"", struct.pack(">d", 0.1), struct.pack(">d", float("nan")), struct.pack(">d", 1e9)):
    host.chief = nonsense
    try:
        cost.write(Moment(step=2), tree)
    except TandemError as error:
        told["refused"].append(error.code)
print(json.dumps(told))
"""


@pytest.mark.cluster
def test_checkpoints_are_bounded_and_decided_by_the_chief(tmp_path: Path) -> None:
    told = json.loads(run(["-c", KEEPING, str(tmp_path)]).splitlines()[-1])
    # At a fit's end there is no portion in which to agree: members that decided by their own clocks would
    # diverge.
    assert (told["own clock"], told["not the chief's"]) == ("due", None)
    assert told["held values"] == [True, True] and told["new values"] == [False, False]
    assert (told["before the stop"], told["after the stop"]) == (None, 1)
    assert (told["not the own clock"], told["the chief's"]) == ("", 1)
    # What is known of the result travels with it: differences are said again, and audits counted on.
    assert told["exactness"] == [["differs"], 7, "shared"]
    assert told["said again"] == {"differs": True}
    assert told["audits"] == [14, 4, "it runs eagerly"]
    assert told["met"] == [[32, 8], [32, 8]]
    assert told["unaudited"] == ["shared", "shared", "", "shared"]
    # A fit that ends while the previous checkpoint is still being written is saved at a Stop, which waits
    # once.
    assert told["busy at the end of a fit"] is True and told["busy before the stop"] == 2
    assert told["waited once"] == told["waited twice"] == 1
    # The clock is checked more and more often, and the first checkpoint is due after 10 s.
    assert told["looks"][0][0] == 2 and len(told["looks"]) < 16
    assert told["looks"][-1][1] == 0 and 100 <= told["looks"][-1][0] <= 103
    # A callback takes 3 s, at each 2,000th batch or from the 8th second on. Members agree after each batch at
    # which callbacks run; otherwise the chief checks in time.
    assert len(told["late"]) == 3 and all(10.0 <= each <= 13.1 for each in told["late"].values()), told[
        "late"
    ]
    # 1 s is 1 % of 100 s; the chief's time counts, and only a plausible one.
    assert (told["first"], told["told"], told["then"]) == (10.0, pytest.approx(100.0), 60.0)
    assert 0.0 < told["cost"] < 0.9 and len(told["refused"]) == 4
    # The first fit ended by an error that the script caught: it runs again, long enough for other
    # checkpoints.
    assert told["left"] == [False, True, False] and told["gone"]
    # From one of those checkpoints the later fits are trained again, and saved with their new state.
    assert told["anew"] == [[1, 77], [2, 77]]
    assert told["large"] is None and told["held"] == told["many"] == 0
    assert len(told["said"]) == 2
    assert told["said"][0].startswith("No checkpoints are kept: one would take ")
    assert "more than 400 times" in told["said"][1]
    # A log loses lines that are repeated, and none of earlier trainings.
    assert told["logs"] == [
        *([0, 1], [], [0, 1, 2, 3, 0, 1], [0, 1, 2, 3, 0, 1], [0, 1, 2, 3]),
        *([0, 0], [0, 1], [0, 0], [], [0, 1, 2], [1]),
    ]
