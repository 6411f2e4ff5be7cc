"""A model's state as plain data, and the thread that writes checkpoints while training goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from core.project import checkpoint_store
from core.project.checkpoint_store import Checkpoint, Exactness, KeptFile
from core.project.copy import check_room
from core.trainer.exact.keras import local_state, model_state
from core.trainer.exact.resume import plain
from core.vocabulary import limits, units
from core.vocabulary.errors import TandemError
from core.vocabulary.plan import Moment

NOW = "now"
_MOST_FITS = 400
_WAIT_S = 0.6 * limits.STOP_S[0]
"""Total wait at a Stop; the rest of the node's time limit is for the step, the callbacks and the model."""


def variables(model: Any) -> list[Any]:
    """All variables that a fit changes: weights, and those of optimizers, seeds and metrics, each once."""
    every = [*model_state.variables(model), *local_state.metric_variables(model)]
    return list({id(_own(v)): v for v in every}.values())


def capture(model: Any) -> list[np.ndarray]:
    """Copies of all variables, in order."""
    return [np.asarray(_own(variable).numpy()) for variable in variables(model)]


def held(model: Any) -> list[Any]:
    """All variables' current values, in order, not copied: while a value is referenced, TensorFlow stores the
    variable's next one elsewhere. For ``arrays``."""
    return [_own(variable).read_value() for variable in variables(model)]


def arrays(values: list[Any]) -> list[np.ndarray]:
    """Values in the form that ``capture`` returns."""
    return [np.asarray(value.numpy()) for value in values]


def fits(model: Any, values: list[np.ndarray]) -> bool:
    """Whether the model currently has exactly these variables."""
    own = [(tuple(v.shape), _dtype(v)) for v in variables(model)]
    return own == [(value.shape, value.dtype.name) for value in values]


def restore(model: Any, values: list[np.ndarray]) -> None:
    """Sets the model's variables. Raises TandemError if the model has others."""
    if not fits(model, values):
        raise TandemError(
            code="checkpoint-model",
            what=f"The model {model.name} differs from the one in the checkpoint.",
            fix="Resume with the same script, arguments and data as before, or start the training again.",
        )
    for variable, value in zip(variables(model), values, strict=True):
        variable.assign(value)


def _own(variable: Any) -> Any:
    """TensorFlow's variable: itself, or the one inside Keras'."""
    value = getattr(variable, "value", variable)
    return variable if callable(value) else value


def _dtype(variable: Any) -> str:
    return str(_own(variable).dtype.name)


class Writer:
    """Writes one checkpoint at a time, on its own thread. The main thread waits for it only at a Stop."""

    def __init__(
        self,
        folder: Path,
        say: Callable[[str], None],
        resumed: Checkpoint | None,
        on_kept: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_kept`` is called after each checkpoint, on the thread that writes it."""
        self._folder = folder
        self._say = say
        self._on_kept = on_kept
        self._thread: threading.Thread | None = None
        self._finished: dict[int, Any] = {}
        """Results of fits that ended and are not in a checkpoint yet."""
        self._unchanged = {} if resumed is None else _finished_files(resumed, resumed.head.moment.fit)
        self._whole = resumed is not None and resumed.head.whole
        self._written: Checkpoint | None = None
        self._trouble = ""
        self._given_up = False
        self.cost_s = 0.0
        """Seconds of a core's time for the last checkpoint written."""

    @property
    def busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def outcome(self, fit: int) -> Any | None:
        """The result of a fit that had ended in the resumed run; None if there is none. Raises TandemError.

        Reads it at once: the resumed checkpoint is removed once there are newer ones.
        """
        file, _ = self._unchanged.get(f"fit-{fit}.json", (None, None))
        return None if file is None else _load(file.parent, file.stem)

    def add_finished(self, fit: int, tree: Any) -> None:
        """Adds the result of a fit that ended to every checkpoint from now on."""
        if fit >= _MOST_FITS:
            self._give_up(f"No more checkpoints are kept: the script calls fit more than {_MOST_FITS} times.")
        if not self._given_up:
            self._finished[fit] = tree

    def _give_up(self, words: str) -> None:
        if not self._given_up:
            self._given_up = True
            self._finished.clear()
            self._say(words)

    def write(
        self,
        moment: Moment,
        shares: tuple[int, ...],
        now: Any | None,
        *,
        wait: bool,
        exactness: Exactness = Exactness(),  # noqa: B008 (frozen)
        sure_step: int | None = None,
    ) -> bool:
        """Writes a checkpoint of the current fit (`now`; None between fits) and of those that ended.

        Returns False if the previous checkpoint is still being written, or with `wait` if this one is not
        written within the time limit. ``exactness``, ``sure_step``: as in ``checkpoint_store.write``.
        """
        until = time.monotonic() + _WAIT_S
        if wait:
            self._join(until)
        if self.busy:
            return False
        self._settle()
        if self._given_up:
            return False
        trees = {f"fit-{fit}": tree for fit, tree in self._finished.items()}
        if now is not None:
            trees[NOW] = now
        self._thread = threading.Thread(
            target=self._run,
            args=(moment, shares, trees, exactness, sure_step),
            name="checkpoint",
            daemon=True,
        )
        self._thread.start()
        if not wait:
            return True
        self._join(until)
        if not self.busy:
            self._settle()
        return not self.busy

    def end(self) -> None:
        """Stops writing. Waits for a checkpoint under way: it would reappear in a folder that is cleared."""
        self._given_up = True
        self._finished.clear()
        if self._thread is not None:
            self._thread.join(_WAIT_S)

    def _join(self, until: float) -> None:
        if self._thread is None:
            return
        self._thread.join(max(0.0, until - time.monotonic()))
        if self.busy:
            self._say(
                f"This disk takes more than {units.duration(_WAIT_S)} for a checkpoint, so the training "
                "can only be resumed from an earlier one."
            )

    def _settle(self) -> None:
        """Takes the thread's results, once it has ended."""
        if self._trouble:
            self._give_up(f"No checkpoints are kept: {self._trouble}")
        if self._written is not None:
            self._unchanged = _finished_files(self._written)
            for name in self._unchanged:
                self._finished.pop(_number(name), None)
            self._written = None

    def moments(self) -> list[Moment]:
        """The moments of the checkpoints here, the newest first; empty if one is still being written."""
        self._join(time.monotonic() + _WAIT_S)
        if self.busy or self._given_up:
            return []
        return [each.head.moment for each in checkpoint_store.complete_by_size(self._folder)]

    def go_back(self, moment: Moment) -> None:
        """Marks this moment's checkpoint to be resumed from, with whole batches. Writes no more."""
        self.end()
        checkpoint_store.go_back(self._folder, moment)

    def _run(
        self,
        moment: Moment,
        shares: tuple[int, ...],
        trees: dict[str, Any],
        exactness: Exactness,
        sure_step: int | None,
    ) -> None:
        began_s = time.thread_time()
        try:
            files: dict[str, list[bytes | memoryview]] = {}
            for name, tree in trees.items():
                json, arrays = plain.dump(tree)
                files[f"{name}.json"] = [json]
                files[f"{name}.bin"] = [*plain.buffers(arrays)]
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            size = sum(memoryview(buffer).nbytes for buffers in files.values() for buffer in buffers)
            whole = size + sum(known.size for _, known in self._unchanged.values())
            if whole > checkpoint_store.LIMIT_BYTES:  # Too large to be read.
                most = f"{units.size(checkpoint_store.LIMIT_BYTES)} is the limit"
                self._trouble = f"one would take {units.size(whole)}, and {most}."
                return
            check_room(self._folder, size)
            self._written = checkpoint_store.write(
                self._folder,
                moment,
                shares,
                files,
                self._unchanged,
                whole=self._whole,
                exactness=exactness,
                sure_step=sure_step,
            )
            self._on_kept()
        except TandemError as error:
            self._trouble = error.what
        except OSError as error:
            self._trouble = f"{self._folder} cannot be written ({error.strerror or error})."
        except plain.NotPlain as error:
            self._trouble = f"the model has variables that cannot be kept ({error})."
        except Exception as error:  # No failure here may end the training.
            self._trouble = f"{type(error).__name__}: {error}"
        self.cost_s = time.thread_time() - began_s


def read(checkpoint: Checkpoint, name: str) -> Any:
    """The tree of this name in a checkpoint; None if there is none. Raises TandemError."""
    here = any(file.name == f"{name}.json" for file in checkpoint.head.files)
    return _load(Path(checkpoint.folder), name) if here else None


def _load(folder: Path, name: str) -> Any:
    try:
        return plain.load((folder / f"{name}.json").read_bytes(), (folder / f"{name}.bin").read_bytes())
    except OSError as error:
        raise plain.broken(error.strerror or str(error)) from error


def _finished_files(checkpoint: Checkpoint, before: int = _MOST_FITS) -> dict[str, tuple[Path, KeptFile]]:
    """Files of fits that ended and have numbers below `before`."""
    folder = Path(checkpoint.folder)
    files = checkpoint.head.files
    return {file.name: (folder / file.name, file) for file in files if 0 <= _number(file.name) < before}


def _number(name: str) -> int:
    word, _, number = name.partition(".")[0].partition("-")
    return int(number) if word == "fit" and number.isdigit() else -1
