"""A small network for 32 x 32 images: `spotwright profile examples/models/small_cnn.py`.

`python examples/models/small_cnn.py FOLDER` writes images to FOLDER, so that reading can be
profiled as well: `spotwright profile examples/models/small_cnn.py --data FOLDER`.
"""

import sys
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

SIDE, CLASSES = 32, 10
IMAGE_BYTES = 3 * SIDE * SIDE
IMAGES_PER_FILE = 1000


class Images(Dataset[tuple[Tensor, int]]):
    """Raw images, from files or made up, each cropped and flipped at random."""

    def __init__(self, folder: Path | None = None) -> None:
        """Find the files of a folder; without one, 10,000 images are made up."""
        self.files = sorted(folder.glob("*.raw")) if folder else []
        self.count = IMAGES_PER_FILE * len(self.files) or 10_000

    def __len__(self) -> int:
        """Return the number of images."""
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """Return one image, prepared for training, and its class."""
        raw = self._read(index).view(3, SIDE, SIDE).float() / 255
        padded = nn.functional.pad(raw, (4, 4, 4, 4))
        left, top = (int(offset) for offset in torch.randint(0, 9, (2,)))
        cropped = padded[:, top : top + SIDE, left : left + SIDE]
        flipped = cropped.flip(2) if torch.rand(()) < 0.5 else cropped
        return (flipped - 0.5) / 0.25, index % CLASSES

    def _read(self, index: int) -> Tensor:
        if not self.files:
            return torch.randint(0, 256, (IMAGE_BYTES,), dtype=torch.uint8)
        number, place = divmod(index, IMAGES_PER_FILE)
        with self.files[number].open("rb") as file:
            file.seek(place * IMAGE_BYTES)
            return torch.frombuffer(bytearray(file.read(IMAGE_BYTES)), dtype=torch.uint8)


def build(data: Path | None = None) -> dict[str, object]:
    """Return what is profiled."""
    model = nn.Sequential(
        *_block(3, 32), *_block(32, 64), *_block(64, 128),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, CLASSES),
    )  # fmt: skip
    return {
        "model": model,
        "loss": loss,
        "batch": batch,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
        "dataset": Images(data),
    }


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the cross entropy of a batch."""
    images, classes = batch
    return nn.functional.cross_entropy(model(images), classes)


def batch(size: int) -> tuple[Tensor, Tensor]:
    """Make images up."""
    return torch.randn(size, 3, SIDE, SIDE), torch.randint(0, CLASSES, (size,))


def _block(inputs: int, outputs: int) -> tuple[nn.Module, ...]:
    convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    return convolution, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)


def write_images(folder: Path, *, file_count: int = 64) -> None:
    """Write files of random images."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(file_count):
        images = torch.randint(0, 256, (IMAGES_PER_FILE, IMAGE_BYTES), dtype=torch.uint8)
        (folder / f"{number:04}.raw").write_bytes(images.numpy().tobytes())


if __name__ == "__main__":
    write_images(Path(sys.argv[1]))
