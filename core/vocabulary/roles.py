"""Who does what in a cluster: TensorFlow's own task types."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """A task type of TF_CONFIG. ``NONE``: the device takes no part in the run."""

    CHIEF = "chief"
    WORKER = "worker"
    PS = "ps"
    EVALUATOR = "evaluator"
    NONE = "none"
