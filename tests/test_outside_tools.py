from pathlib import Path

import pytest

from tests.outside_tools import require, require_tool


def test_a_tool_that_is_there_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "terraform"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert require_tool("terraform") == tool


def test_an_absent_tool_skips_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(pytest.skip.Exception, match="terraform is not on the PATH"):
        require_tool("terraform")


def test_in_ci_an_absent_tool_fails_and_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("PATH", "")

    with pytest.raises(pytest.fail.Exception, match="terraform is not on the PATH"):
        require_tool("terraform")
    with pytest.raises(pytest.fail.Exception, match="no traces"):
        require(False, "no traces")


def test_a_tool_that_is_there_is_found_and_not_complained_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CI", "true")

    require(True, "never said")

    assert require_tool("sh").name == "sh"
