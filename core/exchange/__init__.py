"""How members of a managed run meet: arrays summed and gathered over TLS, without TensorFlow.

**What it is for.** Each member of a run computes gradients of its rows; all need the sum, with the same bits
on each. A member *hands over* its array (a *pack*) under a key (generation, attempt, step, pack) and goes on;
later it *waits* for the results of a stage, all at once. A *meeting* is what becomes of one key: a ``sum`` or
a ``gather``. With each pack travels what is wanted (kind, type, shape, a word of the caller's), so two
members that want different things are told so, both, instead of waiting for ever.

**The numbers.** Of two members each sends the other everything, and both add in rank order. With more, each
element has an owner: everybody sends it that ``part``, it adds in rank order and sends everybody the
``total`` (reduce-scatter and all-gather: 2 (n - 1) / n of the bytes). Adding begins while numbers still come.
float32 may travel as bfloat16 or float16; then a member's own numbers are narrowed like the others', the
addition is in float32, and a total that travels is narrowed for its owner, too. So all end with the same
bits.

**Who may take part.** Keys are made for one generation of one run (``keys``); certificates travel with the
ports over the nodes' pinned links. TLS 1.3 only, both ends show theirs, and it must be, byte by byte, a
pinned one; it says which rank its owner has. Everybody else gets a failed handshake, a few at once, for five
seconds.

**Connections.** Two members have a *session*: two connections, one per direction, since an SSL object is not
for two threads. Either side may dial, and who dials opens both; so one open firewall is enough. ::

    caller                                       called
    TLS, MemberHello(run, rank, nonce, carries) -->        twice: carries from-caller, carries to-caller
                                          <----  MemberHello(the same nonce)
    lower rank                                   higher rank
    Begin(session, message, bytes)        ---->            it decides which session counts, and numbers them
                                          <----  Begin(session, message, bytes)
    MessageHead(message, offset, key, ...) --->            then both ways, each on its own connection:
    piece, piece, ...                     ---->            heads, pieces of up to 256 KiB,
                                          <----  Ack(message)    confirmations, and Alive each second
    Goodbye(reason)                       ---->

**Patience.** Nothing ends because it is slow or silent. Messages to a peer are numbered; it confirms them,
and until then they are kept. A connection that breaks is dialled anew, ``Begin`` says how much has come, and
the rest is sent: the same step goes on. After ten silent seconds another session is tried beside the present
one. Only ``close``, a peer's goodbye (or one that breaks the protocol, or has lost its memory), or
``regroup`` ends a wait, and that at once. ``waiting`` tells meanwhile who is waited for, how long, and how
much has come.

**Memory.** A pack is kept until everybody has confirmed it; arrays land where they are needed, and a sum of
two is made where the other's numbers lie. What a peer sends ahead of this member is bounded, in bytes and in
number, and waits on the way. Arrays that are handed over must not change any more, and results are read-only.

**The parts.** ``state`` has the data, ``machine`` what follows from what happens (pure), ``pack`` the arrays,
``frames`` the bytes on the wire, ``send_window`` and ``inbox`` one peer's messages out and in, ``channel``
its sessions (``duplex``), ``tls_stream``, ``handshake`` and ``acceptor`` how a connection comes to be,
``driver`` what the trainer calls. Threads per peer: one dials, one sends, one receives and adds; and one
listens.
"""
