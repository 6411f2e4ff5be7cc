"""Links: one connection to each paired device that is there.

``hub`` has all devices. ``peer`` is one of them: which connection is its link, and when it is called;
``dial`` reaches it, ``tie_break`` chooses between connections that crossed. ``state``, ``machine`` and
``driver`` are one connection, ``frames`` and ``outbox`` what goes over it.
"""
