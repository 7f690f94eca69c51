from hypothesis import settings

# Shared cores make single examples slow at random; pytest's own timeout catches what hangs.
settings.register_profile("spotwright", deadline=None)
settings.load_profile("spotwright")
