"""Residual networks for images (K. He et al., arXiv:1512.03385): ResNet-18, 50 and their like."""

import nitinol as nt
from nitinol import nn


class ConvNorm(nn.Module):
    """A convolution that keeps the size, but for its stride, and a BatchNorm."""

    def __init__(self, before: int, after: int, kernel: int, stride: int = 1) -> None:
        padding = kernel // 2
        self.conv = nn.Conv2d(before, after, kernel, stride=stride, padding=padding, bias=False)
        self.norm = nn.BatchNorm(after)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        return self.norm(self.conv(x))


class Block(nn.Module):
    """Two convolutions, or three of which that in the middle has fewer channels, beside a shortcut."""

    def __init__(self, before: int, width: int, stride: int, is_bottleneck: bool) -> None:
        after = 4 * width if is_bottleneck else width
        self.steps = (
            [
                ConvNorm(before, width, 1),
                ConvNorm(width, width, 3, stride),
                ConvNorm(width, after, 1),
            ]
            if is_bottleneck
            else [ConvNorm(before, width, 3, stride), ConvNorm(width, width, 3)]
        )
        is_same = before == after and stride == 1
        self.shortcut = None if is_same else ConvNorm(before, after, 1, stride)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        y = x
        for step in self.steps[:-1]:
            y = nt.relu(step(y))
        kept = x if self.shortcut is None else self.shortcut(x)
        return nt.relu(self.steps[-1](y) + kept)


class ResNet(nn.Module):
    """Scores of classes, [batch, classes], of images [batch, 3, height, width]."""

    def __init__(
        self, blocks: list[int], is_bottleneck: bool, classes: int = 1000, width: int = 64
    ) -> None:
        self.stem = ConvNorm(3, width, 7, 2)
        self.stages: list[list[Block]] = []
        channels = width
        for i, count in enumerate(blocks):
            stage: list[Block] = []
            for k in range(count):
                stride = 2 if i > 0 and k == 0 else 1
                stage.append(Block(channels, width << i, stride, is_bottleneck))
                channels = (width << i) * (4 if is_bottleneck else 1)
            self.stages.append(stage)
        self.head = nn.Linear(channels, classes)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        y = nt.max_pool2d(nt.relu(self.stem(x)), 3, stride=2, padding=1)
        for stage in self.stages:
            for block in stage:
                y = block(y)
        return self.head(nt.mean(y, axis=(2, 3)))


def resnet18(classes: int = 1000) -> ResNet:
    return ResNet([2, 2, 2, 2], False, classes)


def resnet50(classes: int = 1000) -> ResNet:
    return ResNet([3, 4, 6, 3], True, classes)


# What torchvision's weights are called here: nn.load_pytorch(path, model, rename=TORCHVISION).
TORCHVISION = {
    **{f"layer{i + 1}": f"stages.{i}" for i in range(4)},
    **{f"*.conv{i + 1}": f"*.steps.{i}.conv" for i in range(3)},
    **{f"*.bn{i + 1}": f"*.steps.{i}.norm" for i in range(3)},
    "downsample.0": "shortcut.conv",
    "downsample.1": "shortcut.norm",
    "conv1": "stem.conv",
    "bn1": "stem.norm",
    "fc": "head",
}
