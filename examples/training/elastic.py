"""A task for `spotwright train`: classes of noisy 8x8 patterns, made on the spot.

spotwright train examples/training/elastic.py --workers 3 --servers 2 --steps 600
"""

import torch
from torch import nn
from torch.utils.data import TensorDataset

CLASSES, SIDE, SAMPLES, NOISE = 10, 8, 2_000, 0.9


def build():
    """Return a model, its optimizer, the loss and the data: the same on every host."""
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Unflatten(1, (1, SIDE)),
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 16, 64),
        nn.ReLU(),
        nn.Linear(64, CLASSES),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    return model, optimizer, nn.CrossEntropyLoss(), patterns()


def patterns():
    """Return samples of ten random patterns under noise."""
    dice = torch.Generator().manual_seed(7)
    shapes = torch.rand(CLASSES, SIDE, SIDE, generator=dice)
    classes = torch.randint(CLASSES, (SAMPLES,), generator=dice)
    noise = torch.randn(SAMPLES, SIDE, SIDE, generator=dice)
    return TensorDataset(shapes[classes] + NOISE * noise, classes)
