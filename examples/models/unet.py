"""U-Net (O. Ronneberger et al., arXiv:1505.04597): a class for each pixel."""

import nitinol as nt
from nitinol import nn


class Convs(nn.Module):
    """Two convolutions, each normalised and followed by relu."""

    def __init__(self, before: int, after: int) -> None:
        self.first = nn.Conv2d(before, after, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm(after)
        self.second = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm(after)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        y = nt.relu(self.first_norm(self.first(x)))
        return nt.relu(self.second_norm(self.second(y)))


class Up(nn.Module):
    """Twice the size, beside what the way down had at that size."""

    def __init__(self, before: int, after: int) -> None:
        self.enlarge = nn.ConvTranspose2d(before, after, 2, stride=2)
        self.convs = Convs(before, after)

    def __call__(self, x: nt.Tensor, kept: nt.Tensor) -> nt.Tensor:
        return self.convs(nt.concat([kept, self.enlarge(x)], axis=1))


class UNet(nn.Module):
    """Scores of classes, [batch, classes, height, width], of images whose sides 2^depth divides."""

    def __init__(
        self, channels: int = 3, classes: int = 2, width: int = 64, depth: int = 4
    ) -> None:
        self.first = Convs(channels, width)
        self.down = [Convs(width << i, width << (i + 1)) for i in range(depth)]
        self.up = [Up(width << (i + 1), width << i) for i in reversed(range(depth))]
        self.head = nn.Conv2d(width, classes, 1)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        kept = [self.first(x)]
        for down in self.down:
            kept.append(down(nt.max_pool2d(kept[-1], 2)))
        y = kept.pop()
        for up in self.up:
            y = up(y, kept.pop())
        return self.head(y)
