"""Reliable delivery between two peers over connections that break, independent of the payload.

A *session* outlives its connections. Messages are numbered, and kept until they are confirmed. ::

    leader                                  follower
    Begin(session, message, bytes)   ---->           numbers the connection: the highest number counts
                                     <----  Begin(session, message, bytes)
    Head(message, offset, size, about) -->           then both ways:
    piece, piece, ...                ---->           pieces of up to 256 KiB,
                                     <----  Ack(message), and Alive after a second without anything else
    Goodbye(reason)                  ---->

A broken connection is redialled. ``Begin`` says how much has arrived, whole messages and whole pieces of
the next one; the rest is sent again. After ten silent seconds, or when its keys are worn, a second connection
is dialled beside the first. A session ends only with a goodbye, or when a peer breaks the protocol or has
lost its state.

**Which connection counts.** The leader alone decides, and numbers it; the follower takes the highest number.
A call from a peer that does not know the present connection crossed it, and is refused. A call from a peer
that knows it means that the peer has lost it; the new connection replaces it. On links the leader numbers a
connection in its hello instead, before any word; there both sides take the highest number, and refuse no
other call.

**Modules.** ``state`` is the data, ``frames`` the bytes on the wire, ``window`` the unconfirmed messages,
``machine`` the protocol, without I/O, clock or thread. ``driver`` runs it with two threads, for the user that
``interface`` describes.
"""
