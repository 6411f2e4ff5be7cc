"""Runs first in the frozen program: makes what it starts find the system's libraries, not ours.

PyInstaller's bootloader points LD_LIBRARY_PATH to our folder and keeps the former value. The loader has
already read it; a file manager or `nvidia-smi` started with it would load our libraries instead of its own.
Another process of this program (a trainer, a node of the demo) needs it as well: it must be told to begin
anew, or it assumes the path is already set, and finds only libraries that the system happens to have.
"""

import os

os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"
was = os.environ.pop("LD_LIBRARY_PATH_ORIG", "")
if was:
    os.environ["LD_LIBRARY_PATH"] = was
else:
    os.environ.pop("LD_LIBRARY_PATH", None)
