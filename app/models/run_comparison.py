"""Runs side by side: which was better, their differences, and what they share. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from typing import NamedTuple

from app.models.runs_model import called, diverged_words, gain_words, goes_on_from, started, state
from app.words.run_words import number
from core.history.best import beats, better, deciding
from core.speed.sentences import chosen_words, speed_up, steps_words
from core.vocabulary import units
from core.vocabulary.answers import RunEntry
from core.vocabulary.text import plain

MOST_METRICS = 8
POSITIONAL = "Arguments"
_SET = "yes"
"""The value of a flag without one."""
_YEAR = len("2026-")


class Line(NamedTuple):
    """``values`` in the runs' order, ``""`` for a missing one. ``best``: places of the winners."""

    name: str
    values: tuple[str, ...]
    best: frozenset[int] = frozenset()

    @property
    def differs(self) -> bool:
        return len(set(self.values)) > 1


class Compared(NamedTuple):
    verdict: str
    better: int | None
    """Place of the best one; None if there is none."""
    lines: tuple[Line, ...]
    """The differences, results first."""
    same: str
    """What all share, in one sentence; or ``""``."""


def compared(entries: Sequence[RunEntry]) -> Compared:
    labels = labels_of(entries)
    lines = [*_results(entries), *_settings(entries)]
    same = [f"{line.name} {line.values[0]}" for line in lines if not line.differs and line.values[0]]
    verdict, won = _verdict(entries, labels)
    return Compared(
        verdict,
        won,
        tuple(line for line in lines if line.differs),
        f"The same in {'both' if len(entries) == 2 else 'all'}: {' · '.join(same)}" if same else "",
    )


def ranked(entries: Sequence[RunEntry]) -> list[int]:
    """Their places, best first, by the deciding metric; unchanged order without one. Runs whose loss became
    NaN come last."""
    metric = _deciding(entries)

    def key(place: int) -> tuple[bool, float]:
        value = _values(entries[place]).get(metric, nan) if metric else 0.0
        return entries[place].summary.diverged is not None, _rank(metric, value)

    return sorted(range(len(entries)), key=key)


def _deciding(entries: Sequence[RunEntry]) -> str:
    """The metric that all of them have; runs whose loss became NaN do not count."""
    values = [set(_values(entry)) for entry in entries if entry.summary.diverged is None]
    return deciding(set.intersection(*values)) if values else ""


def labels_of(entries: Sequence[RunEntry]) -> list[str]:
    """Each run's own name. Otherwise its differing arguments if only these differ; otherwise its start,
    with the script if these differ or one has a name. Never two alike. The year is included if it
    distinguishes them."""
    scripts = {entry.script for entry in entries}
    given = [plain(words, 60) for words in differing([entry.arguments for entry in entries])]
    if len(scripts) == 1 < len(set(given)) == len(given):
        labels = [plain(entry.name, 60) or words for entry, words in zip(entries, given, strict=True)]
        return labels if len(set(labels)) == len(labels) else given
    same = len(scripts) == 1 and not any(entry.name for entry in entries)
    times = [started(entry) for entry in entries]
    if len({when[:_YEAR] for when in times}) == 1:
        times = [when[_YEAR:] for when in times]
    labels = [
        plain(entry.name, 60) if entry.name else when if same else f"{called(entry)}, {when}"
        for entry, when in zip(entries, times, strict=True)
    ]
    if len(set(labels)) < len(labels):
        labels = [f"{label} ({count})" for count, label in enumerate(labels, start=1)]
    return labels


def differing(arguments: Sequence[Sequence[str]]) -> list[str]:
    """Each run's arguments that not all share: ``lr 0.1, no fast``."""
    given = [flags(each) for each in arguments]
    names = dict.fromkeys(name for each in given for name in each)
    apart = [name for name in names if len({each.get(name) for each in given}) > 1]

    def said(name: str, value: str | None) -> str:
        word, alone = name.lstrip("-"), all(each.get(name, _SET) == _SET for each in given)
        if alone:
            return word if value else f"no {word}"
        return value or "no arguments" if name == POSITIONAL else f"{word} {value or 'default'}"

    return [", ".join(said(name, each.get(name)) for name in apart) for each in given]


def flags(arguments: Sequence[str]) -> dict[str, str]:
    """``--lr 0.1 --fast data.csv`` as ``{"--lr": "0.1", "--fast": "yes", "Arguments": "data.csv"}``."""
    found: dict[str, str] = {}
    name = ""
    for word in arguments:
        flag = word.startswith("-") and not _is_number(word)
        if flag:
            name, equals, value = word.partition("=")
            found[name] = value if equals else _SET
            name = "" if equals else name
        elif name:
            found[name], name = word, ""
        else:
            found[POSITIONAL] = f"{found[POSITIONAL]} {word}" if POSITIONAL in found else word
    return found


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _verdict(entries: Sequence[RunEntry], labels: Sequence[str]) -> tuple[str, int | None]:
    values, metric, order = [_values(entry) for entry in entries], _deciding(entries), ranked(entries)
    lost = [place for place, entry in enumerate(entries) if entry.summary.diverged is not None]
    if len(lost) == len(entries):
        return "None was better: the loss of each became NaN or infinite.", None
    if lost and len(lost) == len(entries) - 1 and values[order[0]]:
        return f"“{labels[order[0]]}” was better: {_lost(entries, labels, lost)}.", order[0]
    if lost:
        rest = [place for place in range(len(entries)) if place not in lost]
        verdict, won = _verdict([entries[place] for place in rest], [labels[place] for place in rest])
        told = _lost(entries, labels, lost)
        return f"{verdict} {told[0].upper()}{told[1:]}.", None if won is None else rest[won]
    if not metric:
        return "They have no common metric that shows which was better.", None
    first, second = order[0], order[1]
    said = [_reached(entry, metric, values[place][metric]) for place, entry in enumerate(entries)]
    name = plain(metric, 40)
    if values[first][metric] == values[second][metric]:
        same = number(values[first][metric])
        if len(entries) == 2:
            return f"No difference: the best {name} of both is {same}.", None
        return f"“{labels[first]}” and “{labels[second]}” are equally good: {name} {same}.", None
    if len(entries) == 2:
        return (
            f"“{labels[first]}” was better: {name} {said[first]}, against {said[second]}.",
            first,
        )
    return (
        f"“{labels[first]}” was the best of {len(entries)}: {name} {said[first]}; "
        f"next is “{labels[second]}” with {said[second]}.",
        first,
    )


def _lost(entries: Sequence[RunEntry], labels: Sequence[str], places: Sequence[int]) -> str:
    """``the loss of “a” became NaN, and that of “b” infinite``"""
    said = [
        f"“{labels[place]}” became {found.value}"
        for place in places
        if (found := entries[place].summary.diverged) is not None
    ]
    return "the loss of " + ", and that of ".join(said)


def _reached(entry: RunEntry, metric: str, value: float) -> str:
    at = f" in epoch {entry.best[metric].epoch + 1:,}" if metric in entry.best else " at the end"
    return f"{number(value)}{at}"


def _rank(metric: str, value: float) -> float:
    """Smaller is better; a non-finite value comes last."""
    if value != value:
        return float("inf")
    return -value if better(metric) == "higher" else value


def _values(entry: RunEntry) -> dict[str, float]:
    """The best of each metric; for an earlier Tandem's run the last."""
    return {name: one.value for name, one in entry.best.items()} or {
        name: value for name, value in entry.summary.last_logs.items() if better(name) and isfinite(value)
    }


def _results(entries: Sequence[RunEntry]) -> list[Line]:
    values = [_values(entry) for entry in entries]
    names = sorted(
        dict.fromkeys(name for each in values for name in each),
        key=lambda name: (not name.startswith("val_"), name.removeprefix("val_") != "loss"),
    )
    lines = []
    for metric in names[:MOST_METRICS]:
        have = {place: each[metric] for place, each in enumerate(values) if metric in each}
        sound = {place: value for place, value in have.items() if entries[place].summary.diverged is None}
        top = min(sound.values(), key=lambda value: _rank(metric, value), default=nan)
        won = frozenset(place for place, value in sound.items() if not beats(metric, top, value))
        words = tuple(number(have[place]) if place in have else "" for place in range(len(entries)))
        lines.append(Line(f"Best {plain(metric, 40)}", words, won))
    rates = [entry.summary.speed_samples_s for entry in entries]
    fastest = max((rate for rate in rates if rate is not None), default=None)
    lines.append(
        Line(
            "Speed",
            tuple("" if rate is None else units.samples(rate) for rate in rates),
            frozenset(place for place, rate in enumerate(rates) if rate is not None and rate == fastest),
        )
    )
    gains = [speed_up(entry.summary) for entry in entries]
    lines.append(Line("Speed compared with one laptop", tuple(map(gain_words, gains))))
    lines.append(
        Line(
            "Duration",
            tuple("" if entry.duration_s is None else units.clock(entry.duration_s) for entry in entries),
        )
    )
    lines.append(Line("Trained", tuple(steps_words(entry.summary) for entry in entries)))
    as_on_one = Line("As on one machine", tuple(_as_on_one(entry) for entry in entries))
    return lines if {"yes", ""}.issuperset(as_on_one.values) else [*lines, as_on_one]


def _as_on_one(entry: RunEntry) -> str:
    """``""``: nobody knows, as without a step, or with the script's own strategy on several laptops."""
    summary = entry.summary
    if not summary.steps:
        return ""
    if chosen := chosen_words(summary):
        return f"no: {chosen}"
    if summary.told:
        return "perhaps not"
    return "yes" if summary.audits is not None or len(entry.devices) == 1 else ""


def _settings(entries: Sequence[RunEntry]) -> list[Line]:
    given = [flags(entry.arguments) for entry in entries]
    names = dict.fromkeys(name for each in given for name in each)
    lines = [
        Line(plain(name, 40), tuple(plain(each.get(name, "–"), 120) for each in given)) for name in names
    ]
    return [
        *lines,
        Line("Script", tuple(plain(entry.script, 80) for entry in entries)),
        Line("Laptops", tuple(plain(", ".join(entry.devices), 80) for entry in entries)),
        Line(
            "State",
            tuple(
                ", ".join(filter(None, (state(entry.phase), diverged_words(entry), goes_on_from(entry))))
                for entry in entries
            ),
        ),
        Line("Started", tuple(started(entry) for entry in entries)),
        Line("Note", tuple(plain(entry.note, 200) for entry in entries)),
    ]
