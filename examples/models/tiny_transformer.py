"""A tiny language model: `spotwright profile examples/models/tiny_transformer.py --batch 16`."""

import torch
from torch import Tensor, nn

VOCABULARY, LENGTH, WIDTH, HEADS, LAYERS = 4096, 64, 128, 4, 2


class TinyTransformer(nn.Module):
    """Token and position embeddings, causal layers, and the next token's logits."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits of the next token at each place."""
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
        places = torch.arange(length, device=tokens.device)
        states = self.tokens(tokens) + self.positions(places)
        out: Tensor = self.head(self.layers(states, mask=mask, is_causal=True))
        return out


def build() -> dict[str, object]:
    """Return what is profiled."""
    return {"model": TinyTransformer(), "loss": loss, "batch": batch}


def loss(model: nn.Module, tokens: Tensor) -> Tensor:
    """Return the cross entropy of each next token."""
    logits = model(tokens[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def batch(size: int) -> Tensor:
    """Make sequences up."""
    return torch.randint(0, VOCABULARY, (size, LENGTH + 1))
