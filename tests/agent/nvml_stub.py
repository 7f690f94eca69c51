"""GPUs that are a text file: a stand-in for NVIDIA's library, in C, and what writes its file.

The agent loads it as it loads the real one, through nvidia-ml-py:

    gpus = StubGpus(tmp_path, count=8)
    subprocess.Popen([...], env=os.environ | gpus.environment)
    gpus.set(util=20)  # all of them, from the next call on
    gpus.set(gpu=3, error=GPU_IS_LOST)  # one of them
    gpus.host(**{"hang.nvmlDeviceGetUtilizationRates": 1})

`nvml_stub.c` lists the keys. Values are figures of an A100 unless told otherwise.
"""

import fcntl
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
NOT_SUPPORTED, DRIVER_NOT_LOADED, GPU_IS_LOST, RESET_REQUIRED, UNKNOWN = 3, 9, 15, 16, 999
A100 = {
    "name": "NVIDIA A100-SXM4-40GB",
    "mem_total_bytes": 40 * 2**30,
    "mem_used_bytes": 30 * 2**30,
    "util": 90,
    "sm_clock_mhz": 1410,
    "throttle": 0,
    "ecc": 0,
    "power_mw": 300_000,
    "temperature_c": 55,
    "pcie_generation": 4,
    "pcie_lanes": 16,
    "pcie_tx_mbps": 4000,
    "pcie_rx_mbps": 12_000,
    "nvlink_tx_mbps": 80_000,
    "nvlink_rx_mbps": 80_000,
}


def build_stub(folder: Path | None = None, *, without: tuple[str, ...] = ()) -> Path:
    """Return a folder with the library, compiled unless it is there already.

    Args:
        folder: where to keep it; by default a folder of the user, shared by all test processes.
        without: functions to leave out, as old drivers do.
    """
    source = SOURCE.read_bytes()
    name = hashlib.sha256(source + ",".join(sorted(without)).encode()).hexdigest()[:16]
    shared = Path(tempfile.gettempdir()) / f"spotwright-nvml-stub-{os.getuid()}"
    built = (folder or shared) / name
    built.mkdir(parents=True, exist_ok=True)
    library = built / "libnvidia-ml.so.1"
    with (built / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes that run side by side build it once
        if not library.exists():
            _compile(library, without)
    return built


def _compile(library: Path, without: tuple[str, ...]) -> None:
    new = library.with_suffix(".new")
    left_out = [f"-DWITHOUT_{name}" for name in without]
    flags = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
    soname = "-Wl,-soname,libnvidia-ml.so.1"
    command = ["cc", *flags, soname, *left_out, "-o", str(new), str(SOURCE), "-lm", "-lpthread"]
    subprocess.run(command, check=True)
    new.rename(library)


class StubGpus:
    """The GPUs of one host; what is set holds from the next call of NVML on."""

    def __init__(
        self, folder: Path, *, count: int = 8, wobble: float = 0.0, without: tuple[str, ...] = ()
    ) -> None:
        self._file = folder / "gpus.txt"
        self._library = build_stub(without=without)
        self._values: dict[str, object] = {"count": count, "wobble": wobble}
        self.host(**{f"gpu.{key}": value for key, value in A100.items()})

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to see these GPUs."""
        return {
            "LD_LIBRARY_PATH": str(self._library),
            "SPOTWRIGHT_NVML_STUB": str(self._file),
        }

    def set(self, *, gpu: int | None = None, **values: object) -> None:
        """Set values of one GPU or of all; None takes a value away, so it is not supported."""
        prefix = "gpu" if gpu is None else f"gpu{gpu}"
        self.host(**{f"{prefix}.{key}": value for key, value in values.items()})

    def host(self, **values: object) -> None:
        """Set values of the host; None takes a value away."""
        self._values |= values
        told = {key: value for key, value in self._values.items() if value is not None}
        new = self._file.with_suffix(".new")
        new.write_text("".join(f"{key} {value}\n" for key, value in told.items()))
        new.rename(self._file)  # a reader never sees half a file

    def reset_driver(self) -> None:
        """Reset the driver: NVML must be opened anew, and counters start at zero."""
        generation = self._values.get("generation", 0)
        assert isinstance(generation, int)
        self.host(generation=generation + 1)
