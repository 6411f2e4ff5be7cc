"""Links: one session with each paired device, over one connection after another.

``hub`` manages all devices. ``peer`` is one of them: it picks the connection that carries the link, and
decides when to call; ``dial`` connects, ``greeting`` exchanges hellos. ``driver`` is the link, ``silence``
its timing, ``outbox`` its send queue, ``frames`` its encoding of messages.
"""
