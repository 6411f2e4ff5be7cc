"""Entry point of the frozen program."""

import multiprocessing
import sys

# A script's own worker processes are this program, started again. Does not return in those.
multiprocessing.freeze_support()

from app.__main__ import main  # noqa: E402

sys.exit(main())
