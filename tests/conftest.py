from hypothesis import settings

# Shared cores make single examples slow at random; pytest's own timeout catches what hangs.
settings.register_profile("spotwright", deadline=None)
settings.register_profile("soak", deadline=None, max_examples=2_000)  # `make soak` asks for it
settings.load_profile("spotwright")
