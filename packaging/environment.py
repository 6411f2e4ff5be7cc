"""Runs in the frozen program before everything: what it starts finds the system's libraries, not ours.

PyInstaller's starter points LD_LIBRARY_PATH to our folder and keeps what it was. The loader has read it by
now; a file manager or `nvidia-smi` started with it would load our libraries instead of its own. This program
started once more (a trainer, a node of the demo) needs it as well: it has to be told that it begins anew, or
it takes the path for set already, and finds only libraries that the system happens to have.
"""

import os

os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"
was = os.environ.pop("LD_LIBRARY_PATH_ORIG", "")
if was:
    os.environ["LD_LIBRARY_PATH"] = was
else:
    os.environ.pop("LD_LIBRARY_PATH", None)
