# PYTHON_ARGCOMPLETE_OK
"""``python -m tandem_laptops``: the same as the command ``tandem``."""

import sys

from tandem_laptops.start import main

if __name__ == "__main__":
    sys.exit(main())
