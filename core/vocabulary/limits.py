"""How long each wait of a run may last, in seconds. ``problems`` has the sentence for when one runs out."""

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
]
"""What a run's machines wait for."""

CONSENT_S = 300.0
"""A member's user reads what would run, and decides."""
RECEIVE_S = 60.0
"""Without any sign of a member that receives files and prepares."""
LOAD_S = 120.0
"""Loading TensorFlow. A laptop on which it took long gives itself longer (``core.supervisor.loading_times``),
up to ``LOAD_MOST_S``, and says so before the launch."""
LOAD_MOST_S = 900.0


def loading_s(told_s: float) -> float:
    """What another laptop told of itself, as far as it can be."""
    return told_s if LOAD_S <= told_s <= LOAD_MOST_S else LOAD_S


MEET_S = LOAD_S
"""A trainer waits this long for the others, whose TensorFlow may load slowly; as long as the slowest of them
may take, if that is longer."""
START_MORE_S = 30.0
"""What the starter adds to a trainer's own limits on loading TensorFlow and on meeting, whose verdicts know
more: the longest from launch until every trainer has met the others."""
CAUSE_S = 1.0
"""After a failure that another one may have caused: a peer that was lost, say."""
END_S = 5.0
"""After killing every trainer; a member that has not said so by then is left to itself."""
STOP_S = (120.0, 15.0, 5.0)
"""By force: the step, the callbacks and what the script still does; SIGTERM; SIGKILL. The chief gets
the first, too, to keep the weights after another member's script failed."""
STOP_WHILE_STARTING = 1
"""The force of a first Stop before any step: there is no step's end to wait for."""
FINISH_S = 600.0
"""Between members' ends of the same script, on unequal laptops."""
OUTPUTS_S = 60.0
"""Without any piece of the chief's outputs."""
LAUNCH_S = 900.0
"""A prepared member waits this long for the others, whose users may have to be asked."""
SLACK_S = 15.0
"""What a member adds to the starter's limits, so that the starter's word comes first."""
LOOK_S = 2.0
"""Between two looks at whom the run waits for, and at whether a trainer's process is stopped."""
MISSED_S = 1.5
"""A link that is there again sooner was merely replaced, or this laptop itself slept: nobody was away."""
HELD_S = 8.0
"""A trainer that waits, or is waited for, says something every few seconds: one that has said nothing for so
long cannot."""
STAND_TOLD_S = 4.0
"""What a trainer does is told again after so long, with the numbers of then."""
WAITS_TOLD_S = 5.0
"""Whom the run waits for is told again after so long, with the numbers of then."""
FAREWELL_S = 10.0
"""A member whose trainers have ended waits this long for the starter's last word on the run."""
