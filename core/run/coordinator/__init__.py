"""The starter's side: ``state`` is what it knows, ``machine`` and ``ending`` its steps, ``driver`` I/O."""
