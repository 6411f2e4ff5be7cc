"""The same model by ``fit`` through Tandem's engine, like in a managed script."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import keras
import tensorflow as tf

from bench.engine.heard import Heard
from bench.engine.place import Place
from bench.engine.work import Work
from core.trainer.exact.interface import Checkpointing, Cluster
from core.trainer.exact.members.sketches import Sketches
from core.trainer.exact.patch.install import install
from core.trainer.exact.resume.keeper import Keeper
from core.trainer.exact.resume.writer import Writer
from core.trainer.exact.steps.audit import Auditor
from core.trainer.exact.steps.undo import Undo
from core.trainer.tls_cluster import TlsCluster
from core.vocabulary.trainer_messages import Train


def trainer(work: Work, place: Place, observer: Heard) -> tuple[Any, Callable[..., None]]:
    """The model, and a function that trains it for a number of epochs, with callbacks if any are given."""
    if not place.audits:
        mock.patch.object(Auditor, "ahead", lambda *given: None).start()
        mock.patch.object(Sketches, "take", lambda *given: {}).start()
    if not place.undoes:
        mock.patch.object(Undo, "begin", lambda *given: []).start()
        mock.patch.object(Undo, "stage", lambda *given: tf.no_op()).start()
        mock.patch.object(Undo, "end", lambda *given: None).start()
    if not place.writes:
        mock.patch.object(Keeper, "capture", lambda *given: []).start()
        mock.patch.object(Writer, "write", lambda *given, **options: True).start()
        mock.patch.object(Writer, "add_finished", lambda *given: None).start()
    tls = _met(place) if place.exchange is not None else None
    cluster = Cluster(
        tls.strategy if tls else tf.distribute.get_strategy(),
        place.rank,
        place.shares,
        seed=work.seed,
        wire=place.wire,
        sync=place.sync,
        balance=place.balance,
        checkpointing=Checkpointing(Path(place.keep), place.keep_every_s) if place.keep else None,
        collectives=tls.collectives if tls else None,
    )
    keras.utils.set_random_seed(work.seed)
    with install(cluster, observer).scope():
        model = work.model()
        model.compile(
            optimizer=work.optimizer(), loss="sparse_categorical_crossentropy", metrics=["accuracy"]
        )

    def train(epochs: int, callbacks: Sequence[Any] = ()) -> None:
        model.fit(
            work.images,
            work.labels,
            batch_size=work.batch,
            epochs=epochs,
            verbose=0,
            callbacks=list(callbacks),
        )

    return model, train


def first_epoch_only() -> Any:
    """A callback that ends a fit after its first epoch."""
    callback = keras.callbacks.LambdaCallback()
    callback.on_epoch_end = lambda epoch, logs: setattr(callback.model, "stop_training", True)
    return callback


def _met(place: Place) -> TlsCluster:
    assert place.exchange is not None
    tf_config = os.environ["TF_CONFIG"]
    train = Train(run="bench", task="", folder="", script="", rank=place.rank, tf_config=tf_config)
    tls = TlsCluster(train, place.exchange)
    tls.meet()
    return tls
