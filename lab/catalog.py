"""What the daemon of the laboratory can plan with: its own hosts, as instance types of a cloud.

There is a type for each device and each rate of a link, and one for a server at each rate. A price
buys speed, so that neither a slow device nor a slow link is ever a bargain.
"""

from datetime import UTC, datetime
from pathlib import Path

from lab.network import PAYLOAD_FRACTION, RATES_MBPS
from lab.scenario import load_devices
from spotwright.adapters.catalog.snapshot_file import write_snapshot
from spotwright.domain.catalog import Snapshot, ZonePrice
from spotwright.domain.hardware import Cloud, Gpu, InstanceType
from spotwright.domain.offer import Market, Pool

VCPUS = 2.0  # with which the model takes a worker to be served by the whole server
REGION, ZONE = "lab-1", "lab1-az1"
_SPOT_FRACTION = 0.35  # of the price on demand
_BATCH = 32  # that devices are compared at
_SERVER_USD_PER_HOUR, _USD_PER_HOUR, _USD_PER_GBPS = 0.1, 0.1, 0.01


def worker_type(device: str, mbps: float) -> InstanceType:
    """Return a host that computes, as an instance type."""
    return InstanceType(
        name=f"{device}-{mbps:g}",
        cloud=Cloud.AWS,
        vcpu_count=VCPUS,
        memory_gib=4.0,
        gpu_name=device,
        gpu_count=1,
        gpu_memory_gib=16.0,
        network_baseline_mbps=mbps * PAYLOAD_FRACTION,
    )


def server_type(mbps: float) -> InstanceType:
    """Return a host that holds parameters, as an instance type."""
    return InstanceType(
        name=f"server-{mbps:g}",
        cloud=Cloud.AWS,
        vcpu_count=VCPUS,
        memory_gib=4.0,
        network_baseline_mbps=mbps * PAYLOAD_FRACTION,
    )


def pool_of(device: str, mbps: float, market: Market = Market.ON_DEMAND) -> Pool:
    """Return the pool that a worker's host is of."""
    return Pool(worker_type(device, mbps).name, ZONE, market)


def write_catalog(path: Path) -> None:
    """Write the catalog."""
    devices = load_devices()
    prices = []
    types = {}
    for mbps in RATES_MBPS:
        server = server_type(mbps)
        types[server.name] = server
        usd = _SERVER_USD_PER_HOUR + _USD_PER_GBPS * mbps / 1000
        prices.append(ZonePrice(server.name, REGION, ZONE, usd, None))
        for device in devices.values():
            worker = worker_type(device.name, mbps)
            types[worker.name] = worker
            usd = _USD_PER_HOUR / device.step_s(_BATCH) + _USD_PER_GBPS * mbps / 1000
            prices.append(ZonePrice(worker.name, REGION, ZONE, usd, usd * _SPOT_FRACTION))
    snapshot = Snapshot(
        cloud=Cloud.AWS,
        price_times={REGION: datetime.now(UTC)},
        retired_price_times={},
        sources={"instance_types": "hosts of the laboratory", "prices": "made up"},
        gpus={name: _gpu(name) for name in devices},
        instance_types=types,
        prices=tuple(prices),
        interruption_fraction={},
    )
    write_snapshot(path, snapshot)


def _gpu(device: str) -> Gpu:
    """Return a device as a GPU of which only measured speeds are known."""
    return Gpu(
        name=device,
        architecture="emulated",
        memory_gib=16.0,
        memory_mbps=None,
        fp32_flops=None,
        fp16_flops=None,
        bf16_flops=None,
    )
