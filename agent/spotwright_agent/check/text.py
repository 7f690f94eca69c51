"""What `check` found, for people: one line each."""

from collections.abc import Iterator, Mapping
from typing import Any


def as_text(found: Mapping[str, Any]) -> str:
    """Return what `check` found as lines; the first word says what each is about."""
    return "\n".join(
        [
            *_gpu_lines(found),
            *_network_lines(found),
            *_host_lines(found),
            *_cloud_lines(found["cloud"]),
            *_agent_lines(found),
            *_hardware_lines(found.get("hardware")),
        ]
    )


def _gpu_lines(found: Mapping[str, Any]) -> Iterator[str]:
    figures = {each["index"]: each for each in found["gpu_figures"]}
    for gpu in found["gpus"]:
        told = gpu["problem"] or (
            f"{gpu['name']}  {_or(gpu['memory_bytes'], 2**30, 'GiB')}  "
            f"PCIe {_or(gpu['pcie_generation'])}.0 x{_or(gpu['pcie_lane_count'])}"
        )
        yield f"GPU {gpu['index']}  {told}"
        if own := figures.get(gpu["index"]):
            yield f"      PCIe traffic: {own['pcie_source'] or 'not readable'}"
            if own["not_readable"]:
                yield f"      not told by this GPU: {', '.join(own['not_readable'])}"
    if found["gpu_problem"]:
        yield f"GPU   not readable: {found['gpu_problem']}"
    if found["driver"]:
        yield f"      driver {found['driver']['driver_version']}, " + (
            f"NVML {found['driver']['nvml_version']}"
        )


def _or(value: int | None, unit: int = 1, name: str = "") -> str:
    if value is None:
        return "?"
    return f"{value / unit:.1f} {name}" if name else str(value)


def _network_lines(found: Mapping[str, Any]) -> Iterator[str]:
    for interface in found["interfaces"]:
        speed = interface["speed_mbps"]
        told = f"{speed} Mbit/s" if speed else "speed not told by the driver"
        yield f"NIC   {interface['name']}  {told}"
    if not found["interfaces"]:
        yield "network  no physical interface"
    yield f"RDMA  {', '.join(found['rdma_ports']) or 'no device'}"


def _host_lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"host  readable: {', '.join(found['host_figures']) or 'nothing'}"
    for collector, problem in found["faults"].items():
        yield f"fault {collector}: {problem}"


def _cloud_lines(cloud: Mapping[str, Any]) -> Iterator[str]:
    if cloud["problem"]:
        yield f"cloud {cloud['name'] or 'none'}: {cloud['problem']}"
        return
    facts = (cloud[name] for name in ("instance_id", "instance_type", "zone", "market"))
    yield f"cloud {cloud['name']}  {'  '.join(fact for fact in facts if fact)}"
    notice = cloud["notice"]
    yield f"      notices can be read; now: {notice['detail'] if notice else 'none'}"


def _agent_lines(found: Mapping[str, Any]) -> Iterator[str]:
    service, daemon, spool = found["service"], found["daemon"], found["spool"]
    yield f"service  {service['problem'] or service['state']}"
    yield f"steps {found['training_socket']['path']}: {found['training_socket']['problem'] or 'ok'}"
    for path, problem in found["folders"].items():
        yield f"folder {path}: {problem or 'ok'}"
    if spool["used_bytes"] is not None:
        free = f"{spool['used_bytes'] / 2**20:.1f} MiB used, {spool['free_bytes'] / 2**30:.1f} GiB"
        yield f"spool {free} free{'; ' + spool['problem'] if spool['problem'] else ''}"
    encrypted = "TLS" if daemon["tls"] else "no TLS"
    yield f"daemon {daemon['address']} ({encrypted}): {daemon['problem'] or 'ok'}"
    if certificate := found["certificate"]:
        told = certificate["problem"] or f"{certificate['days_left']:g} days left"
        yield f"certificate {certificate['file']}: {told}"


def _hardware_lines(hardware: Mapping[str, Any] | None) -> Iterator[str]:
    if hardware is None:
        return
    yield f"hardware  {hardware['sample_count']} samples; load: {hardware['load']}; " + (
        f"slowest sample {hardware['slowest_sample_s'] * 1000:.0f} ms"
    )
    for note in hardware["notes"]:
        yield f"      {note}"
    for problem in hardware["problems"]:
        yield f"      PROBLEM: {problem}"
    if not hardware["problems"]:
        yield "      nothing is off"
