import torch

torch.set_num_threads(1)  # models are tiny, and other tests have the other cores
