"""The collective exchange between members of a managed run: sums and gathers arrays over TLS, without
TensorFlow.

**Purpose.** Each member of a run computes gradients for its rows; all members need the sum, with identical
bits. A member *hands over* its array (a *pack*) under a key (generation, attempt, step, pack) and goes on;
later it *waits* for all results of a stage at once. A *meeting* is the collective operation of one key: a
``sum`` or a ``gather``. Each pack carries its call (kind, type, shape, a label from the caller), so that two
members with different calls both get an error instead of waiting for ever.

**Arithmetic.** Two members send each other everything, and both add in rank order. With more members, each
element has an owner: everybody sends it that ``part``, it adds in rank order and sends everybody the
``total`` (reduce-scatter and all-gather: 2 (n - 1) / n of the bytes). Adding begins while numbers still
arrive. float32 may travel as bfloat16 or float16: each member then narrows its own numbers too, adds in
float32, and the owner keeps the narrowed total that it sends. So all members end with the same bits.

**Authentication.** Keys are made for one generation of one run (``keys``); certificates travel with the ports
over the nodes' pinned links. TLS 1.3 only, with certificates on both ends. A certificate must equal a pinned
one byte by byte; it determines its owner's rank. The handshake fails for everybody else. Only a few callers
are handled at once, for five seconds each.

**Connections.** Two members share a session (``core.session``), which runs over a pair of connections, one
per direction, since two threads can't share an SSL object. Either side may dial, and the caller opens both;
so one open firewall is enough. The lower rank leads. ::

    caller                                       called
    TLS, MemberHello(run, rank, nonce, carries) -->        twice: carries from-caller, carries to-caller
                                          <----  MemberHello(the same nonce)

**Patience.** A slow or silent peer never ends a wait. A broken connection is redialled, and the same step
goes on where it stopped. A wait ends without results only by ``close``, by a peer's goodbye,
protocol error or restart, or by ``regroup``, which starts again without members that left; then it ends at
once. Meanwhile ``waiting`` says which members are awaited, for how long, and how much has arrived.

**Memory.** A pack is kept until everybody has confirmed it; arrays are received in place, and a sum of two is
made in the other member's buffer. What a peer may send ahead of this member is limited, in bytes and in
number; the rest waits at the sender. Arrays must not change after they are handed over, and results are
read-only.

**Modules.** ``state`` holds the data, ``machine`` the pure transitions, ``pack`` the arrays, ``frames`` the
hello and the message heads, ``channel`` the session with one peer, ``handshake`` and ``acceptor`` the setup
of connections, ``waits`` what is waited for, ``driver`` the trainer's interface. Threads: for each peer one
sends, one receives and adds, and a third dials when needed; one more listens. With two members, the thread
that asks for a small sum sends its own numbers, and receives and adds the other's (``core.session.turns``).
"""
