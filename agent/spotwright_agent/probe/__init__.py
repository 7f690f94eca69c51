"""How fast the network between two hosts really is: one asks, the other listens.

A probe is one control connection, over TLS, and plain data connections to the same port, which open
with a token that only the two ends of the control connection know.

    asks                                    listens
    GREETING_CONTROL, both prove who they are
    {duration_s, max_mbps}            ->    in bounds, and no other probe runs?
                                      <-    {token}
    one data connection: small messages there and back
    four data connections: zeros      ->    counts for duration_s
                                      <-    {mbps, cpu_fraction}
    four data connections: counts     <-    zeros
                                      <-    {cpu_fraction}

Whoever receives counts, by its own clock, and ends the direction by closing the connections.
"""
