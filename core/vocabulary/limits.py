"""Time limits of a run's waits, in seconds. ``problems`` has the sentence for each expired limit."""

from typing import Literal

Wait = Literal[
    "consent",
    "receive",
    "start",
    "cause",
    "end",
    "stop",
    "finish",
    "outputs",
    "launch",
    "farewell",
    "look",
    "away",
    "leave",
]
"""Waits of a run's state machines."""

SILENT_S = 10.0
"""Silence on its link after which a laptop counts as away."""
CONSENT_S = 300.0
"""For a member's user to read the request and decide."""
RECEIVE_S = 60.0
"""Silence of a member that receives files and prepares."""
LOAD_S = 120.0
"""Loading TensorFlow. A slow laptop allows itself more (``core.supervisor.loading_times``), up to
``LOAD_MOST_S``, and reports that before the launch."""
LOAD_MOST_S = 900.0


def loading_s(told_s: float) -> float:
    """The time that another laptop reported, if it is plausible."""
    return told_s if LOAD_S <= told_s <= LOAD_MOST_S else LOAD_S


MEET_S = LOAD_S
"""How long a trainer waits for the others to load TensorFlow; longer if the slowest one is allowed more."""
START_MORE_S = 30.0
"""The starter's allowance beyond a trainer's own limits on loading TensorFlow and on meeting, so that the
trainer's more precise verdict arrives first. The sum limits the time from launch until all have met."""
CAUSE_S = 1.0
"""Wait for the real cause after a failure that may be a consequence, such as a lost peer."""
SAME_FAULT_S = 4.0
"""Before the first step, after a script's error on one laptop: for the others to reach the same line. They
load TensorFlow at different speeds."""
END_S = 5.0
"""For members to confirm that their trainers were killed; then the run ends without waiting for the rest."""
END_LINK_S = 13.0
"""The same after a cut between trainers that do not redial: slightly longer than a link may be silent, so
that the laptop behind the cut is named."""
STOP_S = (120.0, 15.0, 5.0)
"""One for each force: for the step, the callbacks and the rest of the script; SIGTERM; SIGKILL. The chief
gets the first, too, to save the weights after another member's script failed."""
STOP_WHILE_STARTING = 1
"""The force of a first Stop before any step: there is no step boundary to wait for."""
LEAVE_S = 20.0
"""For a leaving laptop's trainer to end its step; then it is killed, and the step taken back."""
LIVELY_S = 10.0
"""Time after a step's end in which nobody is given up: a laptop that is away may still be training."""
FINISH_S = 600.0
"""Between members' ends of the same script: laptops differ in speed."""
OUTPUTS_S = 60.0
"""Silence while the chief's outputs are fetched."""
LAUNCH_S = 900.0
"""How long a prepared member waits for the others and their users' consent."""
SLACK_S = 15.0
"""A member's allowance beyond the starter's limits, so that the starter reports first."""
LOOK_S = 2.0
"""Interval of checks for members waited for, and for stopped trainer processes."""
MISSED_S = 1.5
"""Shorter absences are ignored: the link was merely replaced, or this laptop itself slept."""
HELD_S = 8.0
"""A trainer that waits, or is waited for, reports every few seconds; after this silence it is unable to."""
ACTIVITY_EVERY_S = 4.0
"""Interval at which a trainer's activity is reported again, with current numbers."""
WAITS_EVERY_S = 5.0
"""Interval at which the members waited for are reported again, with current numbers."""
FAREWELL_S = 10.0
"""How long a member whose trainers have ended waits for the starter's last report on the run."""
