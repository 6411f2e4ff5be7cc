"""Pairing, protocol ``tandem-pair-1``: numeric comparison with commitment.

Two people compare six digits; a man in the middle gets one guess in a million per attempt and can't try
offline. ``code`` has the hashes, ``messages`` the frames' contents, ``machine`` the protocol without I/O;
``driver`` runs it.
"""
