"""Moves files of a manifest from one node to another, as fast as the network and both disks allow.

A node that needs files *asks* for parts of them, in order; the node that has them *offers* the manifest to
that device and answers. Only requested parts are sent, so a slow disk slows only its own transfer. Parts that
arrived before a break, a restart or another run are not requested again: the asking side checks its store,
and keeps no other state. ::

    Ask(number, manifest, extents)      -->   at most 1 MiB of files, small ones together
                                        <--   Here(number), and the bytes; or Denied(number, why)

**Connections.** A *lane* is one session (``core.session``) with each device, run by threads, over separate
connections to the node's one port, with the certificates that the link pins. A lane belongs to one session of
the link: both sides know that session's key, and the lane ends with it. Either side may call.

**Modules.** ``words`` are the messages, ``machine`` decides what to ask for next and what may arrive (pure),
``connections`` sets up connections, ``lane`` is the session with one device, ``hub`` manages all of them.
"""
