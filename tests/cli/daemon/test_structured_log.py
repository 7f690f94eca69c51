import json
import logging
import sys

from spotwright.cli.daemon.structured_log import JsonFormatter, TextFormatter


def test_a_record_is_one_json_object_with_its_facts_as_keys() -> None:
    record = _record("serving on %s", "here", listen="127.0.0.1:1", text="two\nlines")

    line = JsonFormatter().format(record)

    assert "\n" not in line
    told = json.loads(line)
    assert told["message"] == "serving on here"
    assert (told["level"], told["logger"]) == ("warning", "spotwright.test")
    assert (told["listen"], told["text"]) == ("127.0.0.1:1", "two\nlines")
    assert told["time"].endswith("+00:00")


def test_a_traceback_stays_within_the_object() -> None:
    record = _failure()

    line = JsonFormatter().format(record)

    assert "\n" not in line
    assert "ZeroDivisionError" in json.loads(line)["traceback"]


def test_people_read_a_line_with_facts_behind_the_message() -> None:
    line = TextFormatter().format(_record("serving", listen="127.0.0.1:1"))

    assert line.endswith("warning serving listen=127.0.0.1:1")


def test_people_read_the_traceback_below_the_line() -> None:
    first, *rest = TextFormatter().format(_failure()).splitlines()

    assert first.endswith("error   failed")
    assert rest[-1] == "ZeroDivisionError: division by zero"


def _record(message: str, *arguments: object, **facts: object) -> logging.LogRecord:
    logger = logging.getLogger("spotwright.test")
    return logger.makeRecord(
        logger.name, logging.WARNING, __file__, 1, message, arguments, None, extra=facts
    )


def _failure() -> logging.LogRecord:
    logger = logging.getLogger("spotwright.test")
    try:
        _ = 1 / 0
    except ZeroDivisionError:
        return logger.makeRecord(
            logger.name, logging.ERROR, __file__, 1, "failed", (), sys.exc_info()
        )
    raise AssertionError
