"""Exchange of gradients: the arithmetic of stalls, and real processes."""

import subprocess
import sys
from pathlib import Path
from socket import socket

import pytest

from spotwright.domain.errors import BadInputError, OutsideWorldError
from spotwright.profiler.exchange import interface_of, measure_exchange, stalls
from spotwright.profiler.join import join
from spotwright.profiler.profile import ProfileOptions

SCRIPT = """
import torch
def build():
    return {"model": torch.nn.Linear(64, 64), "loss": lambda m, b: m(b).square().mean(),
            "batch": lambda size: torch.ones(size, 64)}
"""
JOIN = "import sys; from spotwright.cli.entry import main; sys.argv[0] = 'spotwright'; main()"


def test_stalls_are_median_differences_within_rounds() -> None:
    found = stalls(
        {"alone": [1.0, 2.0, 3.0], "beside": [1.5, 2.5, 3.5],
         "together": [1.7, 2.9, 3.3], "across": [2.7, 2.8, 4.3]},
        batch=8, process_count=2,
    )  # fmt: skip

    assert found.interconnect_stall_s.mid == pytest.approx(0.7)
    assert (found.interconnect_stall_s.low, found.interconnect_stall_s.high) == pytest.approx(
        (0.3, 0.9)
    )
    assert found.network_stall_s
    assert found.network_stall_s.mid == pytest.approx(1.0)
    assert found.network_stall_s.low == 0.0  # across was faster by chance: no negative stall


@pytest.mark.timeout(300)  # four processes import torch, on a machine that may be busy
def test_two_processes_here_and_one_that_joins_measure_both_stalls(tmp_path: Path) -> None:
    script = tmp_path / "it.py"
    script.write_text(SCRIPT)
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    words = ["profile", str(script), "--join", address, "--batch", "4", "--seconds", "10"]
    with subprocess.Popen(
        [sys.executable, "-c", JOIN, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as other:
        found = measure_exchange(
            str(script), data=None, batch=4, seconds=10.0, device="cpu", local_count=2,
            listen=address,
        )  # fmt: skip
        told, _ = other.communicate(timeout=130)

    assert other.returncode == 0, told.decode()
    assert found.alone_s > 0
    assert found.beside_s > 0
    assert found.together_s > 0
    assert found.across_s
    assert found.network_stall_s is not None


def test_a_process_that_fails_is_told_in_its_own_words(tmp_path: Path) -> None:
    script = tmp_path / "it.py"
    script.write_text("def build():\n    raise OSError('no such weights')\n")

    with pytest.raises(OutsideWorldError, match=r"exchange failed: .*OSError: no such weights"):
        measure_exchange(str(script), data=None, batch=4, seconds=1.0, device="cpu", local_count=2)


@pytest.mark.parametrize("address", ["no", "host:29500", ":29500", "10.0.0.5:", "10.0.0.5:99999"])
def test_what_is_no_address_is_refused_at_both_ends(address: str) -> None:
    options = ProfileOptions(target="it.py", batch=4, batches=(1, 4))

    with pytest.raises(BadInputError, match=r"--join: .* is not ADDRESS:PORT"):
        join(options, address)
    with pytest.raises(BadInputError, match=r"--listen: .* is not ADDRESS:PORT"):
        ProfileOptions(target="it.py", batch=4, batches=(1, 4), listen=address)


def test_the_interface_of_loopback_is_named_as_the_kernel_names_it() -> None:
    assert interface_of("127.0.0.1") == "lo"
