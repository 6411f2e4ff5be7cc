"""A plot's curves: names, colours, hidden ones, subtracted ones. Pure but for the theme."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from app import theme
from app.charts.sources import Source
from core.report.points import MEASURED, USES, CurveKey, Points
from core.vocabulary.ids import DeviceId, short

if TYPE_CHECKING:
    from app.charts.curve import PlotCurve

VALIDATION = "validation"


class PlotLines:
    """The lines of ``sources``. ``hidden``: legend names; ``base``: place of the run subtracted from the
    others."""

    def __init__(
        self, sources: Sequence[Source], hidden: Collection[str] = (), base: int | None = None
    ) -> None:
        self._sources = sources
        self._hidden = frozenset(hidden)
        self._base = base
        self._keys = [(index, key) for index, source in enumerate(sources) for key in source.points.curves]

    @property
    def _several(self) -> bool:
        return len(self._sources) > 1

    def legend(self) -> list[tuple[str, str, bool]]:
        """Name, colour, dashed. Several runs have one line each and the dashed kind once; laptops are
        named at their own plots."""
        if self._several:
            lines = [
                (source.label, theme.run_colour(place), False) for place, source in enumerate(self._sources)
            ]
            dashed = any(key.validation for _, key in self._keys)
            return [*lines, (VALIDATION, theme.colours().faint, True)] if dashed else lines
        found: dict[str, tuple[str, bool]] = {}
        for index, key in self._of_script():
            found.setdefault(self._name(index, key), (self._colour(index, key), key.validation))
        return [(name, *how) for name, how in found.items()]

    def hides(self, index: int, key: CurveKey) -> bool:
        if key.metric in USES:
            return False
        names = {self._name(index, key)}
        if self._several:
            names = {self._sources[index].label, *((VALIDATION,) if key.validation else ())}
        return bool(names & self._hidden)

    def curves(self, metric: str) -> list[PlotCurve]:
        from app.charts.curve import PlotCurve

        return [
            PlotCurve(
                points=self._sources[index].points.curves[key],
                name=self._said(index, key),
                colour=self._colour(index, key),
                dashed=key.validation,
                base=self.taken_off(key),
                hidden=self.hides(index, key),
                strong=self._sources[index].strong,
            )
            for index, key in self._keys
            if key.metric == metric
        ]

    def taken_off(self, key: CurveKey) -> Points | None:
        """The base run's points; without them there is no difference to draw."""
        if self._base is None or key.metric in USES:
            return None
        curves = self._sources[self._base].points.curves
        same = [
            each
            for each in curves
            if (each.metric, each.validation) == (key.metric, key.validation)
            and (each.member == key.member or not each.member)
        ]
        return curves[same[0]] if same else Points()

    def _of_script(self) -> list[tuple[int, CurveKey]]:
        script = [(index, key) for index, key in self._keys if key.metric not in (*USES, *MEASURED)]
        return sorted(script, key=lambda each: each[1].validation)

    def _colour(self, index: int, key: CurveKey) -> str:
        """One run: a colour per data set. Several lines: a colour per line, validation dashed."""
        source, palette = self._sources[index], theme.colours().curves
        if key.metric in USES:
            names = list(source.names)
            return theme.laptop_colour(names.index(key.member) if key.member in names else 0)
        if self._several:
            return theme.run_colour(index)
        members = list(dict.fromkeys(each.member for _, each in self._keys if each.metric not in USES))
        shade = members.index(key.member) if len(members) > 1 else int(key.validation)
        return palette[shade % len(palette)]

    def _member(self, index: int, member: DeviceId) -> str:
        return self._sources[index].names.get(member, short(member)) if member else ""

    def _name(self, index: int, key: CurveKey) -> str:
        """The name in the legend of one run."""
        words = [self._member(index, key.member), VALIDATION if key.validation else "training"]
        return ", ".join(filter(None, words))

    def _said(self, index: int, key: CurveKey) -> str:
        """The name in the plot."""
        member = self._member(index, key.member)
        if key.metric in USES:
            return member
        run = self._sources[index].label if self._several else ""
        kind = VALIDATION if key.validation else "" if key.metric in MEASURED else "training"
        return ", ".join(filter(None, (run, member, kind))) or key.metric
