"""Two real processes that agree over gloo."""

import json
import os
import time
from pathlib import Path

from torch import distributed
from torch.multiprocessing.spawn import spawn

from spotwright_agent.training.rank_agreement import RankAgreement


def join(rank: int, folder: str) -> None:
    store = f"file://{folder}/store"
    distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=2)


def one_rank(rank: int, folder: str) -> None:
    join(rank, folder)
    agreement = RankAgreement()
    told = [agreement.largest(1 if (rank, step) == (1, 3) else 0) for step in range(100)]
    agreement.close()
    (Path(folder) / f"{rank}.json").write_text(json.dumps(told))
    distributed.destroy_process_group()


def test_what_one_rank_was_warned_of_reaches_all_at_the_same_step(tmp_path: Path) -> None:
    spawn(one_rank, (str(tmp_path),), nprocs=2)
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert first == second
    assert sum(first) == 1
    assert first.index(1) > 3


def rank_with_a_bad_peer(rank: int, folder: str, is_silent: bool) -> None:
    join(rank, folder)
    agreement = RankAgreement(timeout_s=3)
    agreement.largest(0)
    if rank == 1:
        done = Path(folder) / "told.json"
        while is_silent and not done.exists():
            time.sleep(0.05)
        os._exit(0)
    told = [agreement.largest(1) for _ in range(100)]
    agreement.close()
    draft = Path(folder) / "draft.json"
    draft.write_text(json.dumps([told, agreement.problem]))
    draft.rename(Path(folder) / "told.json")
    os._exit(0)  # the group of the test itself would wait for the peer


def test_a_rank_that_is_gone_or_silent_ends_the_agreement_and_not_training(tmp_path: Path) -> None:
    for is_silent in (False, True):
        folder = tmp_path / str(is_silent)
        folder.mkdir()
        spawn(rank_with_a_bad_peer, (str(folder), is_silent), nprocs=2)
        told, problem = json.loads((folder / "told.json").read_text())
        assert told == [0] * 100  # whoever saves alone would wait for ever
        assert "no longer agree" in problem


def test_a_single_process_agrees_with_itself_at_once() -> None:
    agreement = RankAgreement()
    assert [agreement.largest(wish) for wish in (0, 2, 1)] == [0, 2, 1]
    assert agreement.problem == ""
