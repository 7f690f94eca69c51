"""moto's server, one request at a time: `python -m tests.serial_moto PORT`.

Its Auto Scaling groups count their nodes without a lock: of two requests at once, both may start
the same missing ones.
"""

import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple


def main() -> None:
    """Serve on loopback until killed."""
    run_simple("127.0.0.1", int(sys.argv[1]), _serial(), threaded=True)


def _serial() -> Callable[[dict[str, Any], Any], Iterable[bytes]]:
    application, turn = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        with turn:
            return list(application(environ, start_response))

    return answer


if __name__ == "__main__":
    main()
