"""What lies in a run's folder, by name. One folder a run, in the node's home, on each of its laptops."""

from __future__ import annotations

import re

PLAN = "plan.json"
PROJECT = "project.json"
"""The manifest of the project's files."""
EVENTS = "events.jsonl"
METRICS = "metrics.jsonl"
SUMMARY = "summary.json"
LOGS = "logs"
"""A folder with one file a task: ``log_name``."""
TANDEM_LOG = "tandem.log"
"""Beside them: Tandem's own words about the training."""
REPORT = "report.html"
PLOT = "plot.svg"
HISTORY_CSV, HISTORY_JSON = "history.csv", "history.json"
TENSORBOARD = "tensorboard"
OUTPUTS = "outputs"
"""What the chief's script wrote."""
TRAINED = "trained"
"""Among the outputs: the models that Tandem saved itself."""
SAVED = "kept"
"""Those models, until the run has ended and they move to ``outputs/trained``."""
CHECKPOINTS = "checkpoints"
INCOMING = "incoming"
"""Files of a checkpoint while they arrive."""
TASKS = "tasks"
"""The members' working copies, as long as the run lasts: one folder a task, ``task_name``."""

DELETED = ".deleted-"
"""Before a run's id: its folder, once it is deleted and while its files go."""

_RUN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,39}")
"""A run's id names a folder here: nothing in it may lead out of the folder of runs."""


def is_run_id(run: str) -> bool:
    return _RUN_ID.fullmatch(run) is not None


def task_name(task: str) -> str:
    """``worker:0`` as a name on the disk. A task's name from a peer never becomes a path."""
    return "".join(char if char.isalnum() else "-" for char in task)[:60]


def log_name(task: str) -> str:
    return f"{task_name(task)}.log"
