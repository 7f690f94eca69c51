"""Two real processes that agree over gloo."""

import json
from pathlib import Path

from torch import distributed
from torch.multiprocessing.spawn import spawn

from spotwright_agent.training.rank_agreement import RankAgreement


def one_rank(rank: int, folder: str) -> None:
    store = f"file://{folder}/store"
    distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    agreement = RankAgreement()
    told = [agreement.largest(1 if (rank, step) == (1, 3) else 0) for step in range(6)]
    agreement.close()
    (Path(folder) / f"{rank}.json").write_text(json.dumps(told))
    distributed.destroy_process_group()


def test_what_one_rank_was_warned_of_reaches_all_at_the_same_step(tmp_path: Path) -> None:
    spawn(one_rank, (str(tmp_path),), nprocs=2)
    told = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1)]
    assert told == [[0, 0, 0, 0, 1, 0]] * 2


def test_a_single_process_agrees_with_itself_at_once() -> None:
    assert [RankAgreement().largest(wish) for wish in (0, 2, 1)] == [0, 2, 1]
