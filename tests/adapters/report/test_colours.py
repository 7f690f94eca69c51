"""Contrast as WCAG 2.1 defines it, in both themes."""

import re
from importlib import resources

import pytest

STYLE = resources.files("spotwright.adapters.report").joinpath("style.css").read_text("utf-8")
LIGHT, DARK = (
    dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))
    for block in re.findall(r":root \{([^}]*--paper[^}]*)\}", STYLE)
)
TEXTS = ("ink", "quiet", "chosen", "rival", "deadline", "budget")
SHAPES = ("frontier", "axis", "range", "compute", "pcie", "nvlink", "network", "ps_service",
          "input_stall", "spot_1", "spot_2", "spot_3", "spot_4", "on_demand_1", "on_demand_2",
          "on_demand_3", "unknown")  # fmt: skip


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_and_shapes_stand_out_from_the_paper(theme: dict[str, str]) -> None:
    for name in TEXTS:
        assert contrast(theme[name], theme["paper"]) >= 4.5, name
    for name in SHAPES:
        assert contrast(theme[name], theme["paper"]) >= 3, name
    assert contrast(theme["quiet"], theme["raised"]) >= 4.5


def test_both_themes_name_the_same_colours() -> None:
    assert set(LIGHT) == set(DARK)
    assert set(re.findall(r"var\(--(\w+)\)", STYLE)) == set(LIGHT)
