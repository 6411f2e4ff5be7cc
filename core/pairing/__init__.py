"""Pairing, protocol ``tandem-pair-1``: numeric comparison with commitment.

Two people compare six digits; a man in the middle gets one guess in a million per attempt and can't grind
offline. ``code`` has the hashes, ``messages`` what frames contain, ``machine`` the protocol without I/O;
``driver`` drives it.
"""
