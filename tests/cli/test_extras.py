"""Which missing modules are an extra that was not installed, and which are faults."""

import pytest

from spotwright.cli.extras import needs_extra
from spotwright.domain.errors import MissingExtraError


@pytest.mark.parametrize(
    ("extra", "module"),
    [("plan", "numpy"), ("plan", "yaml"), ("plan", "scipy.stats"), ("aws", "boto3"),
     ("aws", "botocore.config"), ("aws", "numpy"), ("train", "torch.nn")],
)  # fmt: skip
def test_a_missing_package_of_the_extra_names_the_extra(extra: str, module: str) -> None:
    expected = pytest.raises(MissingExtraError, match=f"^refresh needs the '{extra}' extra")

    with expected, needs_extra(extra, "refresh"):
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)


@pytest.mark.parametrize("module", ["spotwright.adapters.catalogue", "boto3", "numpyy", "", None])
def test_any_other_missing_module_stays_the_fault_it_is(module: str | None) -> None:
    with pytest.raises(ModuleNotFoundError), needs_extra("plan", "refresh"):
        raise ModuleNotFoundError("missing", name=module)


def test_a_name_that_a_package_does_not_have_stays_an_import_error() -> None:
    with pytest.raises(ImportError, match="cannot import"), needs_extra("plan", "refresh"):
        raise ImportError("cannot import name 'x' from 'numpy'", name="numpy")
