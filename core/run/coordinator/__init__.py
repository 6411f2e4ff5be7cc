"""The starter's side: ``state`` is what it knows, ``machine`` and ``ending`` its steps, ``driver`` the I/O."""
