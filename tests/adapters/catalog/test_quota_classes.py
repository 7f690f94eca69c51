import pytest

from spotwright.adapters.catalog.snapshot_file import bundled_path, load_snapshot
from spotwright.domain.hardware import Cloud
from spotwright.domain.offer import Market
from spotwright.domain.quota import QUOTA_CODES, quota_class


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("m5.xlarge", "standard"),
        ("c6in.32xlarge", "standard"),
        ("im4gn.large", "standard"),
        ("d3en.xlarge", "standard"),
        ("g4dn.metal", "g-vt"),
        ("gr6f.4xlarge", "g-vt"),
        ("vt1.3xlarge", "g-vt"),
        ("p3dn.24xlarge", "p"),
        ("p4de.24xlarge", "p"),
        ("p5.4xlarge", "p5"),
        ("p6-b200.48xlarge", "p5"),
        ("inf2.xlarge", "inf"),
        ("trn1n.32xlarge", "trn"),
        ("dl1.24xlarge", "dl"),
        ("f2.6xlarge", "f"),
        ("x2gd.medium", "x"),
        ("u-6tb1.metal", None),
        ("hpc7a.12xlarge", None),
        ("a2-highgpu-1g", None),
        ("Standard_D4s_v5", None),
        ("", None),
    ],
)
def test_a_type_counts_against_the_quota_of_its_family(name: str, expected: str | None) -> None:
    assert quota_class(name) == expected


def test_every_aws_type_has_a_quota_with_a_code_in_both_markets() -> None:
    for kind in load_snapshot(bundled_path(Cloud.AWS)).instance_types.values():
        assert all((kind.quota_class, market) in QUOTA_CODES for market in Market)


def test_p_and_p5_share_a_quota_on_demand_and_not_as_spot() -> None:
    assert QUOTA_CODES["p", Market.ON_DEMAND] == QUOTA_CODES["p5", Market.ON_DEMAND]
    assert QUOTA_CODES["p", Market.SPOT] != QUOTA_CODES["p5", Market.SPOT]
