"""SIGTERM and Ctrl-C as an event that any thread may wait for."""

import os
import signal
import threading


def event_of_stop_signals() -> threading.Event:
    """Return an event that is set once this process is asked to stop; for the main thread.

    A handler runs inside whatever the main thread does just then. In `Event.wait` that holds a lock
    which `Event.set` takes, so a handler must not set the event: the interpreter writes to a pipe,
    and a thread that reads it sets the event.
    """
    stopping = threading.Event()
    asked, ask = os.pipe()
    os.set_blocking(ask, False)

    def wait() -> None:
        os.read(asked, 1)
        stopping.set()

    threading.Thread(target=wait, name="stop-signals", daemon=True).start()
    signal.set_wakeup_fd(ask, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return stopping
