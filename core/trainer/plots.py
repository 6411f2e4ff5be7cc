"""Saves a script's plots as PNG beside it, since a trainer has no screen to show them on.

Nothing here imports matplotlib: the script may not use it.
"""

from __future__ import annotations

import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from itertools import count
from pathlib import Path
from typing import Any

_PYPLOT = "matplotlib.pyplot"


class Plots(MetaPathFinder):
    """Makes ``plt.show`` call ``save``. After a notebook's cell call ``save``: Jupyter would show its plots.

    ``folder``: where NAME-plot-1.png and so on are saved. ``say``: reports the first one, and any failure.
    """

    def __init__(self, folder: Path, name: str, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._name = name
        self._say = say
        self._numbers = count(1)

    def install(self) -> None:
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != _PYPLOT:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and (loader := spec.loader) is not None:
            load = loader.exec_module

            def load_and_watch(module: types.ModuleType) -> None:
                load(module)
                self._watch(module)

            loader.exec_module = load_and_watch  # type: ignore[method-assign]
        return spec

    def _watch(self, pyplot: Any) -> None:
        show = pyplot.show

        def saving_show(*args: Any, **kwargs: Any) -> Any:
            return self.save() if _is_without_screen(pyplot) else show(*args, **kwargs)

        pyplot.show = saving_show

    def save(self) -> None:
        """Saves all open figures, then closes them, like figures that have been shown."""
        pyplot: Any = sys.modules.get(_PYPLOT)
        if pyplot is None or not _is_without_screen(pyplot):
            return
        for number in pyplot.get_fignums():
            path = self._folder / f"{self._name}-plot-{next(self._numbers)}.png"
            try:
                pyplot.figure(number).savefig(path, bbox_inches="tight")
            except OSError as error:
                self._say(f"A plot could not be saved: {error}.")
            else:
                if path.stem.endswith("-plot-1"):
                    self._say(f"Plots that the script shows are saved beside it: {path.name} and so on.")
        pyplot.close("all")


def _is_without_screen(pyplot: Any) -> bool:
    """Whether the backend is Agg, which ``core.supervisor.spawn`` chooses; a user may have chosen another."""
    return str(pyplot.get_backend()).lower() == "agg"
