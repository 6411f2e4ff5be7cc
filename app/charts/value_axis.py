"""The axis of a metric. Imports pyqtgraph, so it is imported with the first plot."""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph as pg

_LABELLED = (1, 2, 5)


class ValueAxis(pg.AxisItem):  # type: ignore[misc]
    """On a logarithmic scale it labels 1, 2 and 5 of a decade: nine numbers would lie over each other."""

    def logTickStrings(self, values: Sequence[float], scale: float, spacing: float | None) -> list[str]:
        words: list[str] = super().logTickStrings(values, scale, spacing)
        some = [
            text if round(10 ** (value % 1)) in (*_LABELLED, 10) else ""
            for text, value in zip(words, values, strict=True)
        ]
        return some if sum(map(bool, some)) > 1 else words
