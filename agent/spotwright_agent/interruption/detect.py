"""Which cloud this host is in.

The firmware's names say whom to ask first. They are not proof: Azure's are those of any Hyper-V,
older EC2 hosts have Xen's. So a cloud counts as found when its metadata server says who we are.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from spotwright_agent.interruption.source import CloudSilentError, MetadataError, MetadataSource

DMI = Path("/sys/class/dmi/id")
CLOUDS = ("aws", "gcp", "azure")
_ASK_S = 0.6  # each, so that three silent ones take less than two seconds
_NAMES = {"amazon": "aws", "google": "gcp", "microsoft": "azure"}
_DMI_FILES = ("sys_vendor", "product_name", "bios_vendor", "bios_version", "board_vendor")
_AZURE_TAG = "7783-7084-3265-9085-8269-3286-77"  # of the chassis; no other Hyper-V has it


def find_cloud(
    choice: str, *, base_url: str = "", dmi: Path = DMI, is_spot: bool = False
) -> MetadataSource | None:
    """Return the cloud to ask for notices; None: there is none, or it does not answer yet.

    Args:
        choice: aws, gcp or azure are taken without asking; auto asks each; none asks nobody.
        base_url: the metadata server, in place of the cloud's own.
        dmi: where the firmware's names are.
        is_spot: the settings say so: there must be a cloud.

    Raises:
        CloudSilentError: there must be a cloud, and none answers.
        MetadataError: `base_url` is not the URL of a server.
    """
    if choice == "none":
        return None
    if choice != "auto":
        return _source(choice, base_url)
    failures: dict[str, MetadataError] = {}
    for name in asking_order(dmi):
        source = _source(name, base_url, timeout_s=_ASK_S)
        try:
            source.facts()
        except MetadataError as error:
            source.close()
            failures[name] = error
        else:
            return source
    if problem := _problem(failures, dmi=dmi, is_spot=is_spot):
        raise CloudSilentError(problem)
    return None


def asking_order(dmi: Path = DMI) -> Sequence[str]:
    """Return the clouds, first the one that the firmware names."""
    named = _named(dmi)
    return [*named, *(cloud for cloud in CLOUDS if cloud not in named)]


def _named(dmi: Path) -> Sequence[str]:
    words = " ".join(_text(dmi / name) for name in _DMI_FILES).lower()
    return [cloud for word, cloud in _NAMES.items() if word in words]


def _problem(failures: Mapping[str, MetadataError], *, dmi: Path, is_spot: bool) -> str:
    """Tell why it is wrong that no cloud answers; empty: there need not be one."""
    for name in _named(dmi):
        if _is_sure(name, dmi):
            return f"{name} is named by the firmware, but {failures[name]}"
    if is_spot:
        first, failure = next(iter(failures.items()))
        return f"this is a spot host, but no cloud answers; {first}: {failure}"
    return ""


def _is_sure(cloud: str, dmi: Path) -> bool:
    return cloud != "azure" or _text(dmi / "chassis_asset_tag").strip() == _AZURE_TAG


def _source(name: str, base_url: str, *, timeout_s: float = 1.0) -> MetadataSource:
    # Imported here: an agent that asks nobody needs no HTTP, which takes 7 MB.
    from spotwright_agent.interruption.aws import AwsMetadata  # noqa: PLC0415
    from spotwright_agent.interruption.azure import AzureMetadata  # noqa: PLC0415
    from spotwright_agent.interruption.gcp import GcpMetadata  # noqa: PLC0415

    if name == "aws":
        return AwsMetadata(base_url, timeout_s=timeout_s)
    if name == "gcp":
        return GcpMetadata(base_url, timeout_s=timeout_s)
    return AzureMetadata(base_url, timeout_s=timeout_s)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")[:200]
    except OSError:
        return ""
