"""Who else is on this laptop's networks: ``presence`` is what a node owns, the rest are its parts.

``interfaces`` chooses networks, ``changes`` follows them, ``record`` reads and writes what travels by mDNS,
``browser`` speaks it. Nothing found here is proven: addresses are hints, the certificate decides later.
"""
