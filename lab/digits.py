"""A small real task: noisy 8x8 digits, drawn on the spot, and a network that learns them.

Nothing of it is emulated but the pace: a step waits until it has lasted as long as it would on its
device, so that eight workers on two cores meet at the server as eight machines would.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from lab.emulated_gpu import Device, Pace
from spotwright.train.script import Task

CLASSES, _SIDE, _HIDDEN = 10, 8, 32
_NOISE, _FAINTEST_INK = 0.4, 0.6
_FONT = """
.###. ..#.. .###. .###. ...#. ##### .###. ##### .###. .###.
#...# .##.. #...# #...# ..##. #.... #.... ....# #...# #...#
#..## ..#.. ....# ....# .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. ..##. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# .#... #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# .#... #...# ....#
.###. .###. ##### .###. ...#. .###. .###. .#... .###. .###.
"""


class Digits(nn.Module):
    """The network, at the pace of a device."""

    def __init__(self, device: Device, seed: int) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(_SIDE**2, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, CLASSES)
        )
        self._pace = Pace(device, seed)

    def forward(self, inputs: Tensor) -> Tensor:
        """Tell digits apart."""
        self._pace.begin(len(inputs))
        outputs: Tensor = self.net(inputs)
        self._pace.reach(1.0)
        return outputs


def digits_task(device: Device, *, learning_rate: float, seed: int, pace_seed: int = 0) -> Task:
    """Return the network, the same on every host, and digits of each worker's own."""
    torch.manual_seed(seed)
    model = Digits(device, pace_seed)

    def data(worker: str, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
        dice = torch.Generator().manual_seed(1000 * seed + sum(worker.encode()))
        while True:
            yield draw_digits(batch, dice)

    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    return Task(model, optimizer, nn.CrossEntropyLoss(), data)


def draw_digits(count: int, dice: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw digits: anywhere in the picture, in ink of any strength, under noise."""
    shapes = _placed_shapes()
    classes = torch.randint(CLASSES, (count,), generator=dice)
    places = torch.randint(shapes.shape[1], (count,), generator=dice)
    ink = _FAINTEST_INK + (1 - _FAINTEST_INK) * torch.rand(count, 1, generator=dice)
    noise = _NOISE * torch.randn(count, _SIDE**2, generator=dice)
    return shapes[classes, places] * ink + noise, classes


def _placed_shapes() -> Tensor:
    """Return each digit at each place: (digits, places, pixels)."""
    lines = [line.split() for line in _FONT.strip().splitlines()]
    height, width = len(lines), len(lines[0][0])
    shapes = torch.tensor([[[p == "#" for p in line[d]] for line in lines] for d in range(CLASSES)])
    corners = [(y, x) for y in range(_SIDE - height + 1) for x in range(_SIDE - width + 1)]
    pictures = torch.zeros(CLASSES, len(corners), _SIDE, _SIDE)
    for place, (y, x) in enumerate(corners):
        pictures[:, place, y : y + height, x : x + width] = shapes
    return pictures.flatten(2)
