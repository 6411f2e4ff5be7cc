"""A member's side: ``state`` is its data, ``machine`` and ``ending`` its steps, ``driver`` its I/O."""
