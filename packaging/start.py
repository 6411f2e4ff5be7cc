"""Where the frozen program begins."""

import multiprocessing
import sys

# A script's own worker processes are this program started again, too. Does not return in those.
multiprocessing.freeze_support()

from app.__main__ import main  # noqa: E402

sys.exit(main())
