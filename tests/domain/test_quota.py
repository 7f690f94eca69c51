import pytest

from spotwright.domain.quota import QUOTA_CLASSES, quota_class

# From "Amazon EC2 instance type quotas": the families behind each of the quota names.
FAMILIES = {
    "standard": "a1 c5 c7gn d3 h1 i4i im4gn is4gen m7i r6idn t3 z1d",
    "g-vt": "g3 g3s g4ad g4dn g5 g5g g6 g6e gr6 vt1",
    "p": "p2 p3 p3dn p4d p4de",
    "p5": "p5 p5e p5en p6-b200 p6e-gb200",
    "inf": "inf1 inf2",
    "trn": "trn1 trn1n trn2",
    "dl": "dl1 dl2q",
    "f": "f1 f2",
    "x": "x1 x1e x2gd x2idn x2iedn x8g",
}


@pytest.mark.parametrize(
    ("family", "expected"),
    [(family, name) for name, families in FAMILIES.items() for family in families.split()],
)
def test_a_family_counts_against_the_quota_that_aws_names_for_it(
    family: str, expected: str
) -> None:
    assert quota_class(f"{family}.xlarge") == expected


@pytest.mark.parametrize("name", ["hpc6a.48xlarge", "mac2.metal", "u-6tb1.metal", "g5", ""])
def test_a_type_with_a_quota_of_another_kind_has_no_class(name: str) -> None:
    assert quota_class(name) is None


def test_the_table_of_families_speaks_of_every_class() -> None:
    assert set(FAMILIES) == QUOTA_CLASSES
