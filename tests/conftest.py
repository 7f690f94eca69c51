import signal
from pathlib import Path

import pytest
from hypothesis import settings

# A shell starts what runs in the background deaf to Ctrl-C, and so would be what tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Shared cores make single examples slow at random; pytest's own timeout catches what hangs.
settings.register_profile("spotwright", deadline=None)
settings.register_profile("soak", deadline=None, max_examples=2_000)  # `make soak` asks for it
settings.load_profile("spotwright")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that may take longest: no worker is alone with one at the end."""
    patience_s: dict[Path, float] = {}
    for item in items:
        mark = item.get_closest_marker("timeout")
        asked_s = float(mark.args[0]) if mark and mark.args else 0.0
        patience_s[item.path] = max(asked_s, patience_s.get(item.path, 0.0))
    items.sort(key=lambda item: -patience_s[item.path])  # stable: the rest stays in order
