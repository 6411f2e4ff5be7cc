"""One run in this process: environment, strategy, script, exit. Main thread of the trainer."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.eager import context

from core.project import checkpoint_store
from core.trainer import (
    cluster_hooks,
    exits,
    graphics,
    plots,
    saved_models,
    script,
    surroundings,
    tpu,
)
from core.trainer.exact.interface import Checkpointing, Cluster, StopRequested
from core.trainer.exact.members import strategy as meeting
from core.trainer.exact.patch import one_member
from core.trainer.exact.patch.install import Installation, install
from core.trainer.mirrored.constructors import Constructors
from core.trainer.observer import ReportingObserver
from core.trainer.orders import Orders, left_to_the_parent
from core.trainer.reporter import Reporter
from core.trainer.sealed import problems as sealing
from core.trainer.sealed.process import Sealed
from core.trainer.tls_cluster import TlsCluster
from core.vocabulary.errors import TandemError
from core.vocabulary.phases import Exit
from core.vocabulary.trainer_messages import ExchangeKeys, Met, Said, Seal, Train

CPU_DEVICES = "TANDEM_CPU_DEVICES"
"""Environment: that many logical CPU devices, each a replica. For trying MirroredStrategy without GPUs."""
KEEP_EVERY_S = "TANDEM_KEEP_EVERY_S"
"""Environment: seconds of training between checkpoints. For trying them, and for measuring what they cost."""

_CLOSING_S = 10.0
_CHIEF_STAYS_S = 0.3
_SAVED_BYTES_S = 20e6
"""A slow disk."""


class TrainerSession:
    """``run`` once; it always returns how the run ended, and raises nothing."""

    def __init__(
        self, train: Train, reporter: Reporter, orders: Orders, sealed: Sealed | None = None
    ) -> None:
        self._train = train
        self._reporter = reporter
        self._orders = orders
        self._sealed = sealed
        self._folder = Path(train.folder)
        self._cluster = json.loads(train.tf_config) if train.tf_config else {}
        self._observer = ReportingObserver(
            reporter,
            shares=train.shares if train.strategy == "managed" else (),
            rank=train.rank,
            ranks=train.ranks,
            stop_asked=self._may_stop,
        )
        self._tls: TlsCluster | None = None

    def run(self) -> Exit:
        try:
            exit = self._run()
        except BaseException as error:
            traceback.print_exc()
            exit = exits.of_house(error)
        if self._tls is not None:
            self._tls.leave(exit.problem)
        return exit

    def _may_stop(self) -> bool:
        # In a cluster a fit that is not the engine's must not stop on one member: the others would wait.
        alike = self._train.strategy == "managed" or not self._cluster
        return alike and self._orders.stop_asked.is_set()

    def _run(self) -> Exit:
        if self._train.launched:
            signal.signal(signal.SIGTERM, left_to_the_parent(os.getpid()))
        os.environ.update(cluster_hooks.environment(self._train.tf_config, self._cluster))
        if (temporary := self._train.temporary) and Path(temporary).is_dir():
            # Programs that the script starts, and this one.
            os.environ["TMPDIR"] = tempfile.tempdir = temporary
        if self._train.seal is not None:
            try:
                self._open_seal(self._train.seal)
            except TandemError as error:
                return Exit(reason="killed", problem=error.problem, shared=False)
        self._choose_devices()
        tpu.name_absence()
        if self._train.strategy == "managed":
            return self._managed()
        return self._serve() if self._serves() else self._own()

    def _open_seal(self, seal: Seal) -> None:
        """Security invariant: before TensorFlow listens anywhere. Raises ``TandemError``."""
        if self._sealed is None:
            raise TandemError.of(sealing.not_apart())
        ready = self._sealed.open(self._train.run, self._train.rank, seal)
        os.environ.update(ready.environment)
        cluster_hooks.over_relays(seal.inside, self._train.linger_s)
        self._observer.on_said(sealing.words(self._sealed.way, downloads=bool(ready.environment)))

    # --- managed -------------------------------------------------------------------------------------------

    def _managed(self) -> Exit:
        try:
            strategy = self._strategy()
        except Exception as error:
            return self._broken_meeting() or exits.of_meeting(error)
        train = self._train
        cluster = Cluster(
            strategy,
            train.rank,
            train.shares,
            train.seed,
            train.wire,
            train.balance,
            checkpointing=self._checkpointing(),
            collectives=self._tls.collectives if self._tls else None,
            names=train.names,
            folders=train.own_folders,
        )
        installation = install(cluster, self._observer)
        if installation.collectives is not None:
            surroundings.agree(installation.collectives, partial(self._observer.on_said, difference=True))
            Constructors(installation.collectives, self._observer.on_said).for_fits()
        exit = self._script(installation.scope, self._on_managed_stop)
        return self._ended(exit, installation)

    def _ended(self, exit: Exit, installation: Installation) -> Exit:
        if exit.reason not in ("finished", "stopped"):
            self._save_alone(exit, installation.models)
            return exit
        if exit.reason == "stopped":
            installation.keep_at_stop()
        saved = self._save(installation.models)  # before anything that another member may end
        if exit.reason == "finished":
            try:
                installation.settle()
            except Exception as error:
                return self._exit_of(error)
        shared = not self._cluster or installation.trained
        exit = Exit(reason=exit.reason, weights_sha256=installation.weights_sha256(), shared=shared)
        # The chief saves meanwhile; all members have the same models, and so the same limit.
        self._close(_CLOSING_S + saved_models.bytes_of(installation.models) / _SAVED_BYTES_S)
        if exit.reason == "finished" and (broken := self._broken_meeting()):
            return broken
        if exit.reason == "finished" and self._train.checkpoints:
            installation.end_checkpointing()
            self._clear(Path(self._train.checkpoints), saved)
        return exit

    def _clear(self, folder: Path, saved: bool) -> None:
        """There is nothing left to resume; but what was trained must not be lost with the model."""
        # By their names: after the script no manifest can be decoded for the first time (script.hide_house).
        if saved or not any(folder.glob("[0-9]*")):
            checkpoint_store.clear(folder)
        else:
            self._observer.on_said(
                f"Since the model could not be saved, its checkpoints are left in {folder}."
            )

    def _checkpointing(self) -> Checkpointing | None:
        train = self._train
        if not train.checkpoints:
            return None
        resume = Path(train.resume) if train.resume else None
        every_s = float(os.environ.get(KEEP_EVERY_S) or train.keep_every_s)
        return Checkpointing(Path(train.checkpoints), every_s, resume)

    def _save_alone(self, exit: Exit, models: Sequence[Any]) -> None:
        """Also what a script trained before an error of its own, or of another member's script. Members of a
        script's own strategy would have to meet to read its variables."""
        readable = not self._cluster or self._train.strategy == "managed"
        if readable and exit.reason in ("finished", "stopped", "script-error", "lost-peer"):
            self._save(models)

    def _save(self, models: Sequence[Any]) -> bool:
        """False where something could not be saved, whose loss would be this member's."""
        if not self._train.keep:
            return True
        return saved_models.save(models, Path(self._train.keep), self._observer.on_said)

    def _strategy(self) -> Any:
        if self._train.exchange is not None:
            self._tls = TlsCluster(self._train, self._train.exchange)
            return cluster_hooks.met_over_tls(self._reporter, self._tls)
        if self._cluster:
            return cluster_hooks.met(self._reporter, meeting.multi_worker)
        several = [device for device in _accelerators() if self._train.gpus != 0]
        if os.environ.get(CPU_DEVICES):
            several = tf.config.list_logical_devices("CPU")
        if found := tpu.strategy(self._observer.on_said):
            strategy: Any = found
        elif len(several) > 1:
            strategy = tf.distribute.MirroredStrategy([device.name for device in several])
        else:
            strategy = tf.distribute.get_strategy()
        cluster_hooks.told(self._reporter, strategy)
        return strategy

    def _broken_meeting(self) -> Exit | None:
        """How the exchange with the others ended, where it did not last."""
        failure = self._tls.failure if self._tls is not None else None
        return None if failure is None else exits.of_exchange(failure)

    def _on_managed_stop(self) -> None:
        """The engine looks for itself, in every step. Before the first ``fit`` nothing would look, and
        nothing is lost by an interrupt."""
        if not self._observer.began:
            self._interrupt()

    # --- a script with its own strategy --------------------------------------------------------------------

    def _own(self) -> Exit:
        if self._train.exchange is not None:
            return self._mirrored(self._train.exchange)
        watch = cluster_hooks.StrategyWatch(self._reporter)
        watch.install(mirrors=bool(self._cluster) and not self._with_servers)
        alone = one_member.install(self._observer)
        if not self._cluster:
            cluster_hooks.told(self._reporter, tf.distribute.get_strategy())
        exit = self._script(contextlib.nullcontext, self._on_own_stop)
        self._save_alone(exit, alone.trained)
        if exit.reason == "finished":
            if self._cluster and not watch.shared:
                return Exit(reason="finished", shared=False)
            self._close(_CLOSING_S)
        return exit

    def _mirrored(self, keys: ExchangeKeys) -> Exit:
        """A loop by hand in a MirroredStrategy: its replicas are the members."""
        try:
            self._tls = TlsCluster(self._train, keys)
            cluster_hooks.met_over_tls(self._reporter, self._tls)
        except Exception as error:
            return self._broken_meeting() or exits.of_meeting(error)
        keras.utils.set_random_seed(self._train.seed)  # a seed that the script sets itself comes later
        surroundings.agree(self._tls.collectives, partial(self._observer.on_said, difference=True))
        one_member.install(self._observer)
        constructors = Constructors(self._tls.collectives, self._observer.on_said)
        constructors.for_loops()
        exit = self._script(contextlib.nullcontext, self._on_own_stop)
        if exit.reason == "finished":
            self._close(_CLOSING_S)
            exit = self._broken_meeting() or Exit(reason="finished", shared=constructors.shared)
        return exit

    def _on_own_stop(self) -> None:
        """Alone, a ``fit`` ends after its step. Otherwise as Ctrl-C in a terminal: members cannot agree on
        a step in a loop of the script's own; each gets the order, and any end after it counts as stopped."""
        if self._cluster or not self._observer.fitting:
            self._interrupt()

    @property
    def _with_servers(self) -> bool:
        return "ps" in self._cluster.get("cluster", {})

    def _serves(self) -> bool:
        """In a cluster with parameter servers the chief alone runs the script; ps and workers serve it."""
        task = self._cluster.get("task", {})
        return task.get("type") == "ps" or (task.get("type") == "worker" and self._with_servers)

    def _serve(self) -> Exit:
        over = self._orders.stop_asked
        signal.signal(signal.SIGTERM, lambda *_: over.set())
        self._orders.follow(lambda: None)
        task = self._cluster["task"]
        try:
            server = tf.distribute.Server(
                tf.train.ClusterSpec(self._cluster["cluster"]),
                job_name=task["type"],
                task_index=int(task["index"]),
                protocol="grpc",
            )
        except Exception as error:
            return exits.of_meeting(error)
        signal.signal(signal.SIGTERM, lambda *_: over.set())
        self._reporter.send(Met(strategy=type(server).__name__, replicas=1))
        over.wait()
        return Exit(reason="stopped", shared=False)

    # --- both ----------------------------------------------------------------------------------------------

    def _choose_devices(self) -> None:
        """One device a trainer in a managed cluster; a ps computes nothing; else what the order says."""
        train, gpus, place = self._train, _accelerators(), None
        most = 0 if self._cluster.get("task", {}).get("type") == "ps" else train.gpus
        if self._cluster and (train.strategy == "managed" or train.exchange is not None):
            place = train.ranks.index(train.rank) if train.rank in train.ranks else 0
        chosen = graphics.taken(gpus, most, place)
        if chosen != gpus:
            tf.config.set_visible_devices(chosen, "GPU")
        if (
            place == 0
            and most is None
            and (words := graphics.idle_words(len(gpus), max(1, len(train.ranks))))
        ):
            self._reporter.send(Said(words=words))
        if count := os.environ.get(CPU_DEVICES):
            configured = [tf.config.LogicalDeviceConfiguration()] * int(count)
            tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], configured)

    def _script(self, scope: Callable[[], Any], on_stop: Callable[[], None]) -> Exit:
        self._orders.follow(on_stop)
        path = self._folder / self._train.script
        surroundings.sort_folders()
        is_chief = self._train.rank == 0
        if self._cluster and is_chief:
            surroundings.watch_writes(path, self._train.own_folders, self._observer.on_said)
        shown = plots.Plots(
            path.parent, path.stem, self._observer.on_said if is_chief else lambda words: None
        )
        shown.install()
        script.hide_house()
        try:
            with scope():
                script.run(path, self._train.arguments, after_cell=shown.save)
        except StopRequested:
            return Exit(reason="stopped")
        except BaseException as error:
            return self._exit_of(error)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # A Stop that comes now comes too late.
        # A fit that was asked to stop has stopped; the script then went on to its end by itself.
        if self._orders.stop_asked.is_set():
            return Exit(reason="stopped")
        # A script may have caught what ended the exchange: then it has trained something else than asked for.
        return self._broken_meeting() or Exit(reason="finished")

    def _exit_of(self, error: BaseException) -> Exit:
        over_tensorflow = bool(self._cluster) and self._train.exchange is None
        exit = self._broken_meeting() or exits.of_script(error, self._folder, cluster=over_tensorflow)
        if self._orders.stop_asked.is_set() and exit.reason != "out-of-memory":
            # An interrupt, or peers that stopped a moment earlier: what was asked for has happened.
            return Exit(reason="stopped")
        if exit.problem is not None:
            print(_last_words(error, exit), file=sys.stderr, end="", flush=True)
        return exit

    def _interrupt(self) -> None:
        main = threading.main_thread().ident
        if sys.platform == "win32":
            signal.raise_signal(
                signal.SIGINT
            )  # Python's handler runs on the main thread, wherever it was raised
        elif main is not None:
            signal.pthread_kill(main, signal.SIGINT)

    def _close(self, limit_s: float) -> None:
        """Nobody leaves while another member still reads from it: all meet once more, within a limit."""
        if self._tls is not None:
            self._tls.close(limit_s)
            return
        if not self._cluster or context.context().coordination_service is None:
            return
        self._reporter.flush(_CLOSING_S)
        try:
            context.context().wait_at_barrier("tandem-closing", int(limit_s * 1000))
        except Exception as error:  # A member that failed has said so itself; this one is done.
            print(f"[tandem] members did not close together: {error}", file=sys.stderr)
        if self._cluster["task"]["type"] == "chief":
            time.sleep(_CHIEF_STAYS_S)  # The barrier's answers leave from here.


def _accelerators() -> list[Any]:
    return list(tf.config.list_physical_devices("GPU"))


def _last_words(error: BaseException, exit: Exit) -> str:
    """What Python would print at the end."""
    if isinstance(error, SystemExit):
        return f"{error.code}\n" if isinstance(error.code, str) else ""
    return exit.problem.detail if exit.problem is not None else ""
