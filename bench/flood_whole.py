"""A whole flood against an agent without rate limits: what lies behind its budgets is bounded, too."""

from __future__ import annotations

import asyncio
import sys

from bench.flood import flooded
from bench.result import Row

_UNHELD = """
import sys
from core.link import budgets
for kind, held in budgets.BUDGETS.items():
    budgets.BUDGETS[kind] = budgets.Budget(1e12, 1e12, held.counts, held.replaceable)
from tandem_laptops.start import main
sys.exit(main())
"""


def measure() -> list[Row]:
    with flooded([sys.executable, "-c", _UNHELD]) as (flood, _, _):
        return asyncio.run(flood.whole())
