import multiprocessing

import torch

torch.set_num_threads(1)  # models are tiny, and other tests have the other cores
# All processes of these tests are forked from one that has imported PyTorch.
multiprocessing.get_context("forkserver").set_forkserver_preload(
    ["spotwright.train.roles", "spotwright.train.ddp", "tests.train.task_script", "torch._dynamo"]
)
