"""A variational autoencoder (D. Kingma, M. Welling, arXiv:1312.6114) of images of numbers from 0 to 1."""

from typing import NamedTuple

import nitinol as nt
from nitinol import nn


class Seen(NamedTuple):
    """What a Vae makes of images."""

    logits: nt.Tensor  # of the pixels that it would draw, [batch, pixels]
    mean: nt.Tensor  # [batch, code]
    log_variance: nt.Tensor  # [batch, code]


class Vae(nn.Module):
    """x: [batch, pixels]."""

    def __init__(self, pixels: int = 784, hidden: int = 400, code: int = 20) -> None:
        self.encode = nn.Linear(pixels, hidden)
        self.mean = nn.Linear(hidden, code)
        self.log_variance = nn.Linear(hidden, code)
        self.decode = nn.Linear(code, hidden)
        self.out = nn.Linear(hidden, pixels)

    def __call__(self, x: nt.Tensor) -> Seen:
        hidden = nt.relu(self.encode(x))
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        code = mean + nt.random.randn_like(mean) * nt.exp(log_variance / 2)
        return Seen(self.draw(code), mean, log_variance)

    def draw(self, code: nt.Tensor) -> nt.Tensor:
        return self.out(nt.relu(self.decode(code)))


def vae_loss(seen: Seen, x: nt.Tensor) -> nt.Tensor:
    """What the pixels and the code cost, as a sum over an image and a mean over the batch."""
    pixels = nn.bce_with_logits(seen.logits, x, reduction="sum")
    variance = nt.exp(seen.log_variance)
    code = nt.sum(seen.mean**2 + variance - 1 - seen.log_variance) / 2
    return (pixels + code) / x.shape[0]
