"""Run by test_kept: trains a little script wholly, stopped in the middle, or resumed from a checkpoint.

Called as: python -m tests.core.trainer.exact.kept_member ORDER. Each of ORDER's `names` is a list in JSON,
[name, kind, model, resume]: kind `whole`, `crowded` (many checkpoints), `stopped` (in an epoch), `validating`
(stopped at its end), `evaluating` (stopped between the fits), `doubted` (an audit finds a fault late),
`differing` (likewise, but the training does not go back; then stopped in an epoch), `unaware` (stopped before
that audit) or `resumed`; model
`noisy` (with Dropout), `drawing` (likewise; generators of the script's own draw in data and callbacks) or
`late` (without Dropout, and its loss is of the batch as a whole from the 36th step on); resume: a
checkpoint's folder.
"""

from __future__ import annotations

import json
import os
import random
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

from core.trainer.exact.interface import Checkpointing, Cluster, StopRequested, WentBack
from core.trainer.exact.patch.install import install
from tests.exactness import member

SEED = 7
CALIBRATED = ("whole", "stopped", "resumed")
"""Jobs whose steps are measured first. That changes no bit, but needs another trace."""


class Asked(member.Quiet):
    """Counts reports; asks to stop when told to."""

    asks = False
    said: list[str]
    differs: list[str]
    """Those about ways in which the result may differ."""

    def __init__(self) -> None:
        super().__init__()
        self.forget()

    def forget(self) -> None:
        self.asks, self.said, self.differs = False, [], []

    def on_said(self, words: str, difference: bool = False) -> None:
        self.said.append(words)
        self.differs += [words] if difference else []

    def should_stop(self) -> bool:
        return self.asks


def train(layout: str, ask: Any, trained: list[Any]) -> Any:
    """Two fits. `ask(fit, epoch, batch)` is called for every batch; in a validation with batch -1, -2 ..."""
    import keras
    import numpy as np
    import tensorflow as tf

    from tests.exactness.scenarios.registry import BATCH, table

    keras.backend.clear_session()
    keras.utils.set_random_seed(SEED)
    x, y = table()
    generators: dict[str, Any] = {"pcg": np.random.default_rng(3), "old": np.random.RandomState(4)}
    by_tensorflow = tf.random.Generator.from_seed(5)

    class Drawn(keras.utils.PyDataset):
        """Data with noise, in another order in each epoch."""

        def __init__(self, rows: int, seed: int) -> None:
            super().__init__()
            self.order = np.arange(rows)
            self.random = np.random.default_rng(seed)

        def __len__(self) -> int:
            return len(self.order) // BATCH

        def __getitem__(self, batch: int) -> Any:
            rows = self.order[batch * BATCH : (batch + 1) * BATCH]
            noise = self.random.normal(0, 0.1, (BATCH, 1)).astype("float32")
            return x[rows] + noise, y[rows]

        def on_epoch_end(self) -> None:
            self.random.shuffle(self.order)

    class Ask(keras.callbacks.Callback):
        """A callback as a user might write it."""

        def __init__(self, fit: int) -> None:
            super().__init__()
            self.fit = fit
            self.epoch = 0
            self.losses: list[float] = []
            self.what: Any = object()
            self.random = random.Random(6)
            self.drawn: list[float] = []

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.epoch = epoch
            if layout == "drawing":
                of_numpy = [each.uniform() for each in generators.values()]
                self.drawn += [*of_numpy, self.random.random(), float(by_tensorflow.uniform(()))]
                self.model.optimizer.learning_rate = 0.01 + 0.001 * self.drawn[-4]

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.losses.append(float(logs["loss"]))
            ask(self.fit, self.epoch, batch)

        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            """Runs at every batch, so that sums are rounded alike however slow the machine is."""
            ask(self.fit, self.epoch, -1 - batch)

    layers = [keras.layers.Dense(16, activation="relu"), keras.layers.BatchNormalization(synchronized=True)]
    layers += [keras.layers.Dropout(0.3)] if layout != "late" else []
    model = keras.Sequential([keras.Input((x.shape[1],)), *layers, keras.layers.Dense(1)])
    trained.append(model)

    def later(true: Any, seen: Any) -> Any:
        far = keras.ops.mean(keras.ops.square(true - seen))
        begun = model.optimizer.iterations >= 35
        return far + tf.cond(begun, lambda: tf.math.reduce_std(seen), lambda: tf.constant(0.0))

    loss = later if layout == "late" else "mse"
    model.compile(keras.optimizers.Adam(0.01), loss=loss, metrics=["mae"])
    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x)).batch(BATCH)
    first = model.fit(data, epochs=1, callbacks=[Ask(0)], verbose=0)
    assert list(first.history) == ["loss", "mae"]
    between = model.evaluate(x, y, batch_size=BATCH, callbacks=[Ask(0)], verbose=0)
    own = Ask(1)
    csv = keras.callbacks.CSVLogger("log.csv")
    stopping = keras.callbacks.EarlyStopping("val_loss", patience=2, restore_best_weights=True)
    plateau = keras.callbacks.ReduceLROnPlateau("val_loss", factor=0.5, patience=1, min_delta=0.05)
    given: dict[str, Any]
    if layout == "drawing":
        given = {"x": Drawn(len(x), 7), "validation_data": Drawn(2 * BATCH, 8)}
    else:
        given = {"x": x, "y": y, "batch_size": BATCH, "validation_data": (x[:100], y[:100])}
    second = model.fit(
        **given,
        epochs=4,
        callbacks=[stopping, plateau, csv, own],
        verbose=0,
    )
    return {
        "between": between,
        "histories": [first.history, second.history],
        "epochs": [first.epoch, second.epoch],
        "losses": own.losses,
        "drawn": [*own.drawn, float(np.mean([each.uniform() for each in generators.values()]))],
        "best": stopping.best,
        "rate": float(model.optimizer.learning_rate),
        "iterations": int(model.optimizer.iterations),
        "csv": Path("log.csv").read_text() if Path("log.csv").exists() else "",
    }


def main() -> None:
    member.begin()
    order = json.loads(sys.argv[1])
    out, shares = Path(order["out"]), tuple(order["shares"])
    asked = Asked()
    if len(shares) > 1:
        installation = member.join(order, asked)
        host = installation._host
    else:
        import tensorflow as tf

        installation = install(Cluster(tf.distribute.get_strategy(), 0, (1,), SEED), asked)
        host = installation._host
    import numpy as np

    from core.trainer.exact.keras.callback_kinds import WRITERS
    from core.trainer.exact.resume.keeper import Keeper
    from core.trainer.exact.steps import calibration
    from core.trainer.exact.steps.course import AuditTime

    record: dict[str, Any] = {}
    for name, kind, model, resume in map(json.loads, order["names"]):
        work = out / name
        work.mkdir()
        if resume:
            # The chief's files stay in place when a run continues.
            job, _, before = Path(resume).parents[1:4]
            log = before / "rank0" / job.name / "log.csv"
            (work / "log.csv").write_text(log.read_text() if log.exists() else "")
        os.chdir(work)
        host.stopping, host.step = False, 0
        installation.begin_training()
        asked.forget()
        keeping = Checkpointing(
            work / "kept",
            # With 0 every batch is due, however fast the machine is; otherwise none is before a Stop.
            every_s=0.0 if kind in ("crowded", "doubted") else 1e6,
            resume=Path(resume) if resume else None,
            goes_back=kind != "differing",
        )
        host.keeper = Keeper(keeping, host, WRITERS if len(shares) > 1 else ())

        def ask(fit: int, epoch: int, batch: int, kind: str = kind) -> None:
            last = order["rank"] == max(0, len(shares) - 1)
            in_epoch = (1, 2, 7)
            when = {
                "stopped": in_epoch,
                "differing": in_epoch,
                "unaware": (1, 0, 16),
                "validating": (1, 2, -1),
                "evaluating": (0, 0, -1),
            }
            if last and (fit, epoch, batch) == when.get(kind):
                asked.asks = True
            if kind == "crowded" and (fit, epoch, batch) == (1, 0, 0):
                written()  # to get a second one, however slow the disk is
            if kind == "doubted":
                written()  # to get one after each step on all members

        def written() -> None:
            """Waits until no checkpoint is under way."""
            assert host.keeper._writer is not None
            if host.keeper._writer._thread is not None:
                host.keeper._writer._thread.join()

        trained: list[Any] = []
        told: dict[str, Any] = {}
        try:
            with installation.scope(), ExitStack() as changes:
                if name not in CALIBRATED:
                    changes.enter_context(mock.patch.object(calibration, "wanted", lambda *_: False))
                if kind in ("doubted", "differing", "unaware"):
                    # As with slow steps: audits only steps that are audited whatever the cost.
                    slow = mock.patch.object(AuditTime, "affords_at_first", lambda time, cost_s: False)
                    changes.enter_context(slow)
                told = train(model, ask, trained)
        except WentBack as went:
            told["went_back"] = went.why.what
        except StopRequested:
            installation.keep_at_stop()
            told["stopped"] = True
        written()
        weights = trained[0].get_weights()
        np.savez(work / "weights.npz", *weights)
        told |= {"step": host.step, "said": asked.said, "differs": asked.differs}
        if (audits := installation.audits) is not None:
            told["audits"] = [audits.steps, audits.audited]
        record[name] = told
        (out / "times.json").write_text(name)
    member.leave(out, record)


if __name__ == "__main__":
    main()
