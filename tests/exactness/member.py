"""One process of the matrix: plain Keras, or a member of a cluster. Runs many scenarios, leaves .npz files.

Called as: python -m tests.exactness.member ORDER, with ORDER a JSON object (see processes.py). Ends with the
test's process, or when its stdin closes, so that it never outlives the test.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from core.trainer.walls import raise_walls, read_walls
from core.vocabulary.trainer_messages import ExchangeKeys, Train

SEED = 11
ALL_AUDITED_S = 60.0
"""However slow this machine is, all steps are audited, unless a scenario asks for fewer."""
_leaves: list[Callable[[], None]] = []


def begin() -> None:
    """Loads Keras as a trainer does, and from now on ends with the parent."""

    parent = multiprocessing.parent_process()

    def wait() -> None:
        sys.stdin.buffer.read() if parent is None else parent.join()
        os._exit(3)

    threading.Thread(target=wait, daemon=True).start()
    gc.disable()
    import keras  # noqa: F401

    import core.trainer.exact.patch.install  # noqa: F401

    gc.freeze()  # nothing that is imported is garbage
    gc.set_threshold(20_000)  # collecting as often as usual takes 7 % of the time: tracing makes many objects
    gc.enable()


class Quiet:
    """An observer that counts reports, and records messages and in how many bits gradients are sent."""

    def __init__(self) -> None:
        self.heard: dict[str, int] = {}
        self.words: list[str] = []
        self.differences: list[str] = []
        """The messages that the result may differ: the run does not end green."""
        self.sent_bits: set[int] = set()

    def on_said(self, words: str, difference: bool = False) -> None:
        self.words.append(words)
        self.differences += [words] if difference else []

    def on_step(self, report: Any) -> None:
        self.sent_bits.add(report.sent_bits)

    def __getattr__(self, name: str) -> Any:
        def hear(*args: Any) -> None:
            self.heard[name] = self.heard.get(name, 0) + 1

        return hear

    def step_due(self) -> bool:
        return True

    def should_stop(self) -> bool:
        return False


def join(order: dict[str, Any], observer: Any, balance: bool = False) -> Any:
    """Becomes a member. The strategy is created first, as nothing of TensorFlow may run before it."""
    import tensorflow as tf

    from core.trainer.exact.interface import Cluster
    from core.trainer.exact.patch.install import install
    from core.trainer.tls_cluster import TlsCluster

    workers = [f"127.0.0.1:{port}" for port in order["ports"]]
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": {"worker": workers}, "task": {"type": "worker", "index": order["rank"]}}
    )
    processors = [tf.config.LogicalDeviceConfiguration()] * (1 + order["devices"][order["rank"]])
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], processors)
    shares, folders = tuple(order["shares"]), (Path(order["out"]),)
    tls = TlsCluster(train_order(order), msgspec.convert(order["keys"], ExchangeKeys))
    tls.meet()
    _leaves.append(lambda: tls.leave(None))
    cluster = Cluster(tls.strategy, order["rank"], shares, SEED, order["wire"], balance, folders=folders)
    return install(replace(cluster, collectives=tls.collectives, sync=order["sync"]), observer)


def train_order(order: dict[str, Any]) -> Train:
    return Train(
        run="exactness", task="", folder="", script="", rank=order["rank"], tf_config=os.environ["TF_CONFIG"]
    )


def end() -> None:
    """Exit without TensorFlow's own shutdown, which may hang in a cluster."""
    for leave in _leaves:
        leave()
    os._exit(0)


def leave(out: Path, record: dict[str, Any]) -> None:
    """Writes the results, and exits."""
    (out / "record.json").write_text(json.dumps(record, default=float))
    (out / "done").write_text("")
    end()


def gathers(model: Any) -> bool:
    """Whether this member's losses had the predictions of all rows."""
    loop = getattr(model, "train_function", None)
    return any(traced.sharing.gathers for traced in getattr(loop, "_traced", {}).values())


def main() -> None:
    order = json.loads(sys.argv[1])
    if order.get("walls"):
        walls = read_walls(order["walls"])
        raise_walls(walls)  # before the first thread
        try:
            list(Path(walls.user).iterdir())
        except PermissionError:
            Path(order["out"], "walled").touch()
    os.nice(10)  # as trainers: those of tests beside it have their turn
    begin()
    out = Path(order["out"])
    device = order["devices"][order["rank"]]
    observer = Quiet()
    installation = join(order, observer) if order["shares"] else None
    import keras
    import numpy as np
    import tensorflow as tf

    from core.trainer.exact.steps import calibration
    from tests.exactness import unlike
    from tests.exactness.flushes import Flushes
    from tests.exactness.scenarios.catalogue import SCENARIOS

    times: dict[str, float] = {}
    models: list[Any]
    computing = partial(tf.device, f"CPU:{device}") if device else nullcontext
    wanted = calibration.wanted
    flushes = Flushes() if order["sync"] != "exact" else None
    for name in order["names"]:
        calibration.wanted = wanted if name in order["calibrated"] else lambda *_: False
        print(f"{time.strftime('%X')} {name}", file=sys.stderr, flush=True)
        folder = out / f"work-{name}"
        folder.mkdir()
        os.chdir(folder)
        keras.backend.clear_session()
        keras.utils.set_random_seed(SEED)
        observer.words.clear()
        observer.differences.clear()
        observer.sent_bits.clear()
        if installation:
            installation.begin_training()
            for audits in (installation._host.audits, installation._host.test_audits):
                audits.first_s = ALL_AUDITED_S
        began, models = time.perf_counter(), []
        try:
            with computing():
                outcome = SCENARIOS[name].run(folder)
            models = outcome.models
            arrays: dict[str, Any] = {
                f"value/{key}": np.asarray(value) for key, value in outcome.values.items()
            }
            for number, model in enumerate(models):
                for place, weight in enumerate(model.weights):
                    arrays[f"weight/{number}/{place}/{weight.path}"] = np.asarray(weight)
                optimizer = getattr(model, "optimizer", None)
                for place, variable in enumerate(optimizer.variables if optimizer else ()):
                    arrays[f"state/{number}/{place}"] = np.asarray(variable)
            if flushes is not None:
                arrays |= flushes.taken()
            np.savez(out / f"{name}.part.npz", **arrays)
            (out / f"{name}.part.npz").rename(out / f"{name}.npz")
        except Exception:
            (out / f"{name}.error").write_text(traceback.format_exc())
        told = {
            "words": observer.words,
            "differences": observer.differences,
            "gathers": any(gathers(model) for model in models),
            "sent_bits": sorted(observer.sent_bits),
        }
        (out / f"{name}.told.json").write_text(json.dumps(told))
        times[name] = time.perf_counter() - began
        (out / "times.json").write_text(json.dumps(times))
    if any(order["devices"]):
        with computing():
            unlike.run(order["rank"], out)
    digest = installation.weights_sha256() if installation else ""
    (out / "done").write_text(digest)
    end()


if __name__ == "__main__":
    main()
