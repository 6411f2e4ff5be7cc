"""One run in this process: environment, strategy, script, exit. Main thread of the trainer."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf
from msgspec import structs
from tensorflow.python.eager import context

from core.project import checkpoint_store
from core.trainer import (
    agreement,
    cluster_hooks,
    exits,
    graphics,
    plots,
    saved_models,
    script,
    surroundings,
)
from core.trainer.exact.interface import Checkpointing, Cluster, StopRequested
from core.trainer.exact.patch import one_member
from core.trainer.exact.patch.install import Installation, install
from core.trainer.mirrored.constructors import Constructors
from core.trainer.observer import ReportingObserver
from core.trainer.orders import Orders, interrupt_main, leave_sigterm_to_parent
from core.trainer.reporter import Reporter
from core.trainer.sealed import problems as sealing
from core.trainer.sealed.process import Sealed
from core.trainer.tls_cluster import TlsCluster
from core.vocabulary.errors import TandemError
from core.vocabulary.phases import Exit
from core.vocabulary.trainer_messages import ExchangeKeys, Kept, Met, Said, Seal, Train

CPU_DEVICES = "TANDEM_CPU_DEVICES"
"""Environment: number of logical CPU devices, each a replica. For trying MirroredStrategy without GPUs."""
KEEP_EVERY_S = "TANDEM_KEEP_EVERY_S"
"""Environment: seconds of training between checkpoints. For tests, and for measuring what they cost."""

_CLOSING_S = 10.0
_CHIEF_STAYS_S = 0.3
_SAVED_BYTES_S = 20e6
"""Assumed speed of a slow disk."""


class TrainerSession:
    """Call ``run`` once; it always returns how the run ended, and raises nothing."""

    def __init__(
        self, train: Train, reporter: Reporter, orders: Orders, sealed: Sealed | None = None
    ) -> None:
        self._train = train
        self._reporter = reporter
        self._orders = orders
        self._sealed = sealed
        self._folder = Path(train.folder)
        meets = train.exchange is not None or train.seal is not None
        self._cluster = json.loads(train.tf_config) if train.tf_config and meets else {}
        self._observer = ReportingObserver(
            reporter,
            shares=train.shares if train.strategy == "managed" else (),
            rank=train.rank,
            ranks=train.ranks,
            stop_asked=self._may_stop,
            is_chief=lambda: self._tls is None or self._tls.collectives.is_chief,
        )
        self._tls: TlsCluster | None = None

    def run(self) -> Exit:
        try:
            exit = self._run()
        except BaseException as error:
            traceback.print_exc()
            exit = exits.of_bug(error)
        if self._tls is not None:
            self._tls.leave(None if exit.reason == "stopped" else exit.problem)
        return exit

    def _may_stop(self) -> bool:
        """Whether to stop after this step. Raises ``StopRequested`` if only this member ends."""
        if self._orders.leave_asked.is_set():
            raise StopRequested
        # In a cluster, a fit outside the engine must not stop on one member: the others would wait.
        all_stop = self._train.strategy == "managed" or not self._cluster
        return all_stop and self._orders.stop_asked.is_set()

    def _run(self) -> Exit:
        if self._train.launched:
            signal.signal(signal.SIGTERM, leave_sigterm_to_parent(os.getpid()))
        os.environ.update(cluster_hooks.environment(self._train.tf_config, self._cluster))
        if (temporary := self._train.temporary) and Path(temporary).is_dir():
            # For programs that the script starts, and for this one.
            os.environ["TMPDIR"] = tempfile.tempdir = temporary
        if self._train.seal is not None:
            try:
                self._open_seal(self._train.seal)
            except TandemError as error:
                return Exit(reason="killed", problem=error.problem, shared=False)
        elif not self._cluster and len(self._train.shares) > 1:
            # Security invariant: TensorFlow's runtime accepts any caller, so only sealed trainers use it.
            return Exit(reason="killed", problem=sealing.not_apart(), shared=False)
        self._choose_devices()
        if self._train.strategy == "managed":
            return self._run_managed()
        return self._serve() if self._serves() else self._run_own()

    def _open_seal(self, seal: Seal) -> None:
        """Security invariant: call before TensorFlow listens anywhere. Raises ``TandemError``."""
        if self._sealed is None:
            raise TandemError.of(sealing.not_apart())
        ready = self._sealed.open(self._train.run, self._train.rank, seal)
        os.environ.update(ready.environment)
        cluster_hooks.over_relays(seal.inside, self._train.linger_s)
        self._observer.on_said(sealing.words(downloads=bool(ready.environment)))

    # --- managed -------------------------------------------------------------------------------------------

    def _run_managed(self) -> Exit:
        try:
            strategy = self._make_strategy()
        except Exception as error:
            return self._broken_meeting() or exits.of_meeting(error)
        train = self._train
        cluster = Cluster(
            strategy,
            train.rank,
            train.shares,
            train.seed,
            train.options.wire,
            train.balance,
            checkpointing=self._checkpointing(),
            collectives=self._tls.collectives if self._tls else None,
            names=train.names,
            folders=train.own_folders,
            sync=train.options.sync,
        )
        installation = install(cluster, self._observer)
        if installation.collectives is not None:
            surroundings.agree(installation.collectives, partial(self._observer.on_said, difference=True))
            Constructors(installation.collectives, self._observer.on_said).for_fits()
        exit = self._run_script(installation.scope, self._on_managed_stop)
        return self._finish(exit, installation)

    def _finish(self, exit: Exit, installation: Installation) -> Exit:
        if exit.reason not in ("finished", "stopped"):
            self._save_without_meeting(exit, installation.models)
            return structs.replace(exit, audits=installation.audits)
        if exit.reason == "stopped" or self._train.stands_in:
            installation.keep_at_stop()
        led = self._observer.is_chief()
        saved = self._save(installation.models)  # before anything that another member may end
        if exit.reason == "finished":
            try:
                installation.settle()
            except Exception as error:
                return self._exit_of(error)
        shared, digest = not self._cluster or installation.trained, installation.weights_sha256()
        exit = structs.replace(exit, weights_sha256=digest, shared=shared, audits=installation.audits)
        # The chief saves meanwhile; all members have the same models, and so the same limit.
        self._close(_CLOSING_S + saved_models.bytes_of(installation.models) / _SAVED_BYTES_S)
        if exit.reason == "finished" and (broken := self._broken_meeting()):
            return broken
        if not led:
            saved = self._save(installation.models)  # the chief may have been lost at the very end
        if exit.reason == "finished" and self._train.checkpoints and not self._train.stands_in:
            installation.end_checkpointing()
            self._clear(Path(self._train.checkpoints), saved)
        return exit

    def _clear(self, folder: Path, saved: bool) -> None:
        """Clears the checkpoints, unless a model could not be saved."""
        # Looks at names only: no manifest can be decoded for the first time after the script has run
        # (script.hide_tandem).
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
        every = os.environ.get(KEEP_EVERY_S, train.keep_every_s)
        every_s, kept = None if every is None else float(every), partial(self._reporter.send, Kept())
        # Going back ends the process, which a cluster's launcher would mistake for the end of the job.
        return Checkpointing(Path(train.checkpoints), every_s, resume, kept, goes_back=not train.launched)

    def _save_without_meeting(self, exit: Exit, models: Sequence[Any]) -> None:
        """Saves what the script trained, even before an error of its own or of another member.

        Not in a cluster with a script's own strategy: members would have to meet to read its variables.
        """
        readable = not self._cluster or self._train.strategy == "managed"
        if readable and exit.reason in ("finished", "stopped", "script-error", "lost-peer"):
            self._save(models)

    def _save(self, models: Sequence[Any]) -> bool:
        """Saves on the chief. False if something could not be saved, which this member would lose."""
        if not (self._train.keep and self._observer.is_chief()):
            return True
        return saved_models.save(models, Path(self._train.keep), self._observer.on_said)

    def _make_strategy(self) -> Any:
        if self._train.exchange is not None:
            self._tls = TlsCluster(self._train, self._train.exchange)
            return cluster_hooks.met_over_tls(self._reporter, self._tls)
        several = [device for device in tf.config.list_physical_devices("GPU") if self._train.gpus != 0]
        if os.environ.get(CPU_DEVICES):
            several = tf.config.list_logical_devices("CPU")
        if len(several) > 1:
            strategy: Any = tf.distribute.MirroredStrategy([device.name for device in several])
        else:
            strategy = tf.distribute.get_strategy()
        cluster_hooks.report_strategy(self._reporter, strategy)
        return strategy

    def _broken_meeting(self) -> Exit | None:
        """How the exchange with the others ended, if it broke."""
        failure = self._tls.failure if self._tls is not None else None
        return None if failure is None else exits.of_exchange(failure)

    def _on_managed_stop(self) -> None:
        """Interrupts a script before its first ``fit``, losing nothing. Later the engine checks in each
        step."""
        if not self._observer.began:
            interrupt_main()

    # --- a script with its own strategy --------------------------------------------------------------------

    def _run_own(self) -> Exit:
        if self._train.exchange is not None:
            return self._run_mirrored(self._train.exchange)
        watch = cluster_hooks.StrategyWatch(self._reporter)
        watch.install(mirrors=bool(self._cluster) and not self._with_servers)
        alone = one_member.install(self._observer)
        if not self._cluster:
            cluster_hooks.report_strategy(self._reporter, tf.distribute.get_strategy())
        exit = self._run_script(contextlib.nullcontext, self._on_own_stop)
        self._save_without_meeting(exit, alone.trained)
        if exit.reason == "finished":
            if self._cluster and not watch.shared:
                return Exit(reason="finished", shared=False)
            self._close(_CLOSING_S)
        return exit

    def _run_mirrored(self, keys: ExchangeKeys) -> Exit:
        """Runs a hand-written loop in a mirrored strategy, whose replicas are the members."""
        try:
            self._tls = TlsCluster(self._train, keys)
            cluster_hooks.met_over_tls(self._reporter, self._tls)
        except Exception as error:
            return self._broken_meeting() or exits.of_meeting(error)
        keras.utils.set_random_seed(self._train.seed)  # a seed that the script sets itself overrides this
        surroundings.agree(self._tls.collectives, partial(self._observer.on_said, difference=True))
        one_member.install(self._observer)
        constructors = Constructors(self._tls.collectives, self._observer.on_said)
        constructors.for_loops()
        exit = self._run_script(contextlib.nullcontext, self._on_own_stop)
        if exit.reason == "finished":
            self._close(_CLOSING_S)
            exit = self._broken_meeting() or Exit(reason="finished", shared=constructors.shared)
        return exit

    def _on_own_stop(self) -> None:
        """Acts like Ctrl-C in a terminal, except in a ``fit`` on one laptop, which ends after its step.

        Members cannot agree on a step in a custom loop. Each gets the order; an end after it counts as a
        Stop.
        """
        if self._cluster or not self._observer.fitting:
            interrupt_main()

    @property
    def _with_servers(self) -> bool:
        return "ps" in self._cluster.get("cluster", {})

    def _serves(self) -> bool:
        """Whether this task is a server: with parameter servers only the chief runs the script."""
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
        """One GPU per trainer if members are replicas; none for a parameter server; otherwise as ordered."""
        train, gpus, index = self._train, tf.config.list_physical_devices("GPU"), None
        most = 0 if self._cluster.get("task", {}).get("type") == "ps" else train.gpus
        if self._cluster and (train.strategy == "managed" or train.exchange is not None):
            index = train.ranks.index(train.rank) if train.rank in train.ranks else 0
        chosen = graphics.choose(gpus, most, index)
        if chosen != gpus:
            tf.config.set_visible_devices(chosen, "GPU")
        words = graphics.idle_words(len(gpus), max(1, len(train.ranks)))
        if words and index == 0 and most is None:
            self._reporter.send(Said(words=words))
        if count := os.environ.get(CPU_DEVICES):
            configured = [tf.config.LogicalDeviceConfiguration()] * int(count)
            tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], configured)

    def _run_script(self, scope: Callable[[], Any], on_stop: Callable[[], None]) -> Exit:
        self._orders.follow(on_stop, self._tls.go_on_without if self._tls else None)
        path = self._folder / self._train.script
        begins_as_chief = self._train.rank == 0
        say = self._observer.on_said if begins_as_chief else lambda words: None
        surroundings.sort_folders(path.parent, say)
        if self._train.agreed and (changed := agreement.why_not(Path(self._train.agreed), self._folder)):
            return Exit(reason="killed", problem=changed, shared=False)
        if self._cluster and begins_as_chief:
            surroundings.watch_writes(path, self._train.own_folders, self._observer.on_said)
        figures = plots.Plots(path.parent, path.stem, say)
        figures.install()
        script.hide_tandem()
        try:
            with scope():
                script.run(path, self._train.arguments, after_cell=figures.save, data=self._train.data)
        except StopRequested as stop:
            left = self._orders.leave_asked.is_set()
            return exits.of_leaving() if left else Exit(reason="stopped", problem=stop.why)
        except BaseException as error:
            return self._exit_of(error)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # A Stop is too late from here on.
        # A fit that was asked to stop has stopped; the script then ran to its end.
        if self._orders.stop_asked.is_set():
            return Exit(reason="stopped")
        # A script that caught the exchange's error trained something other than requested.
        return self._broken_meeting() or Exit(reason="finished")

    def _exit_of(self, error: BaseException) -> Exit:
        over_tensorflow = bool(self._cluster) and self._train.exchange is None
        leaves = self._train.strategy == "managed" and self._tls is not None
        exit = self._broken_meeting() or exits.of_script(
            error, self._folder, cluster=over_tensorflow, walls=self._train.walls, leaves=leaves
        )
        if self._orders.stop_asked.is_set() and exit.reason != "out-of-memory":
            # An interrupt, or peers that stopped a moment earlier: the Stop was carried out.
            return Exit(reason="stopped")
        if exit.problem is not None:
            print(_last_words(error, exit), file=sys.stderr, end="", flush=True)
        return exit

    def _close(self, limit_s: float) -> None:
        """Waits up to ``limit_s`` for all members: none may leave while another still reads from it."""
        if self._tls is not None:
            self._tls.close(limit_s)
            return
        if not self._cluster or context.context().coordination_service is None:
            return
        self._reporter.flush(_CLOSING_S)
        try:
            context.context().wait_at_barrier("tandem-closing", int(limit_s * 1000))
        except Exception as error:  # A member that failed reports it itself; this one is done.
            print(f"[tandem] members did not close together: {error}", file=sys.stderr)
        if self._cluster["task"]["type"] == "chief":
            time.sleep(_CHIEF_STAYS_S)  # The chief still sends the barrier's answers.


def _last_words(error: BaseException, exit: Exit) -> str:
    """The text that Python would print at the end."""
    if isinstance(error, SystemExit):
        return f"{error.code}\n" if isinstance(error.code, str) else ""
    return exit.problem.detail if exit.problem is not None else ""
