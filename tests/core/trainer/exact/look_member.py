"""Run by test_look_cost: the digits example as a member, and the processor time before a step."""

from __future__ import annotations

import json
import os
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.exactness.member import Quiet, begin, join, leave

EXAMPLE = Path(__file__).parents[4] / "resources/examples/digits/digits.py"


def main() -> None:
    begin()
    order = json.loads(sys.argv[1])
    out = Path(order["out"])
    join(order, Quiet())

    from core.trainer.exact.members import agreement
    from core.trainer.exact.steps import division, loop, probe

    spent_s: dict[str, float] = {}

    def timed(owner: Any, name: str) -> None:
        function: Callable[..., Any] = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            began_s = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                spent_s[name] = spent_s.get(name, 0.0) + time.process_time() - began_s

        setattr(owner, name, call)

    for owner, name in (
        (probe, "judged"),
        (division, "own_writes"),
        (division, "metrics_in_gradients"),
        (agreement, "agree_on_data"),
        (loop.Loop, "_trace"),
    ):
        timed(owner, name)
    os.chdir(out)
    sys.argv = [str(EXAMPLE), "--epochs", "1"]
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    leave(out, spent_s)


if __name__ == "__main__":
    main()
