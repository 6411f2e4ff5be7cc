"""Finds other nodes on this laptop's networks: a node owns a ``presence``, the rest are its parts.

``interfaces`` chooses networks, ``changes`` follows them, ``record`` reads and writes mDNS records,
``browser`` speaks mDNS. Nothing found here is authenticated: addresses are hints; the certificate decides
later.
"""
