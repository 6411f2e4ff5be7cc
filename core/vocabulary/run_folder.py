"""Names of the files in a run's folder. One folder per run, in the node's home, on each of its laptops."""

from __future__ import annotations

import re

PLAN = "plan.json"
PROJECT = "project.json"
"""The manifest of the project's files."""
RESUMED = "resumed"
"""A folder: the project of another laptop's run, resumed here."""
EVENTS = "events.jsonl"
METRICS = "metrics.jsonl"
LATER = "metrics-later.jsonl"
"""Steps and epochs that other laptops recorded after this one was lost."""
SUMMARY = "summary.json"
LOGS = "logs"
"""A folder with one file per task: ``log_name``."""
TANDEM_LOG = "tandem.log"
"""In the same folder: Tandem's own messages about the training."""
REPORT = "report.html"
HISTORY_CSV, HISTORY_JSON = "history.csv", "history.json"
TENSORBOARD = "tensorboard"
OUTPUTS = "outputs"
"""The outputs of the chief's script."""
LEFT = "outputs-left"
"""The chief's outputs that were not brought back, on its laptop."""
TRAINED = "trained"
"""Subfolder of the outputs with the models that Tandem saved itself."""
SAVED = "kept"
"""A folder for those models until the run has ended; then they move to ``outputs/trained``."""
CHECKPOINTS = "checkpoints"
WRITTEN = f"{CHECKPOINTS}-written"
"""Files that the script had written in its working copy when a run ended early; deleted with the
checkpoints."""
BROUGHT = f"{CHECKPOINTS}-brought"
"""The same, received from another laptop."""
BESIDE = "beside.json"
"""The files in the script's own folder before the training began, if it ran there."""
SUCCESSOR = "successor"
"""The id of the run that continues this one in place of its lost starter."""
REPLACED = "replaced"
"""Files beside the starter's own script that others replaced, when a later run resumed this one."""
INCOMING = "incoming"
"""A folder for a checkpoint's files while they arrive."""
TASKS = "tasks"
"""The members' working copies during the run: one folder per task, ``task_name``."""
WORK = "work"
"""A working copy of the project, in a task's folder there."""
AGREED = "agreed.json"
"""In a task's folder there, if the script runs in the user's own folder: the manifest consented to."""

DELETED = ".deleted-"
"""Prefix of a deleted run's folder while its files are being removed."""

_RUN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,39}")
"""A run's id names a folder here: it must not lead out of the folder of runs."""


def is_run_id(run: str) -> bool:
    return _RUN_ID.fullmatch(run) is not None


def task_name(task: str) -> str:
    """``worker:0`` as a file name. A task's name from a peer never becomes a path."""
    return "".join(char if char.isalnum() else "-" for char in task)[:60]


def log_name(task: str) -> str:
    return f"{task_name(task)}.log"
