"""Figures that the other host tells are taken or refused, and nothing else happens."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotwright_agent.probe.channel import number
from spotwright_agent.probe.errors import ProbeError


@pytest.mark.parametrize(
    "text", ["9" * 400, "-1", "1e10", "Infinity", "NaN", "true", "null", '"1"', "[1]", "{}"]
)
def test_what_is_no_figure_is_refused(text: str) -> None:
    with pytest.raises(ProbeError, match="no usable mbps"):
        number(json.loads(f'{{"mbps": {text}}}'), "mbps")


@given(st.integers(0, 400_000) | st.floats(0, 400_000))
def test_what_a_network_may_have_is_taken(mbps: float) -> None:
    assert number({"mbps": mbps}, "mbps") == mbps
