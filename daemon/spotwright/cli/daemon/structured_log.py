"""Logs as one JSON object a line, or as text for people; both on stderr."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def set_up_logging(*, level: str, as_json: bool) -> None:
    """Send what the daemon logs from this level on to stderr; of libraries, what they warn of."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    logging.getLogger().handlers[:] = [handler]
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("spotwright").setLevel(level.upper())
    logging.captureWarnings(True)


class JsonFormatter(logging.Formatter):
    """Each record as one JSON object with its facts as keys."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        told = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_facts(record),
        }
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str)


class TextFormatter(logging.Formatter):
    """Each record as a line for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a line, and the traceback below it."""
        time = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        facts = "".join(f" {key}={value}" for key, value in _facts(record).items())
        line = f"{time} {record.levelname.lower():7} {record.getMessage()}{facts}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    told = record.__dict__.items()  # with notes of libraries to themselves, which begin with _
    return {key: value for key, value in told if key not in _STANDARD and not key.startswith("_")}
