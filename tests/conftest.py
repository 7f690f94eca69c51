import signal

from hypothesis import settings

# A shell starts what runs in the background deaf to Ctrl-C, and so would be what tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Shared cores make single examples slow at random; pytest's own timeout catches what hangs.
settings.register_profile("spotwright", deadline=None)
settings.register_profile("soak", deadline=None, max_examples=2_000)  # `make soak` asks for it
settings.load_profile("spotwright")
