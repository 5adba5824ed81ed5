"""A transformer that sees images as rows of patches (A. Dosovitskiy et al., arXiv:2010.11929)."""

import nitinol as nt
from nitinol import nn


class VisionTransformer(nn.Module):
    """Scores of classes, [batch, classes], of images [batch, 3, size, size]."""

    def __init__(
        self,
        size: int = 224,
        patch: int = 16,
        width: int = 192,
        depth: int = 12,
        heads: int = 3,
        classes: int = 1000,
    ) -> None:
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        count = (size // patch) ** 2
        self.class_token = nt.parameter(nn.truncated_normal((1, 1, width), deviation=0.02))
        self.positions = nt.parameter(nn.truncated_normal((1, count + 1, width), deviation=0.02))
        self.blocks = [
            nn.TransformerEncoderLayer(
                width, heads, 4 * width, dropout=0.0, activation="gelu", norm_first=True, eps=1e-6
            )
            for _ in range(depth)
        ]
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        y = nt.swapaxes(nt.flatten(self.patches(x), 2), 1, 2)  # [batch, patches, width]
        token = nt.broadcast_to(self.class_token, (y.shape[0], 1, y.shape[2]))
        y = nt.concat([token, y], axis=1) + self.positions
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y)[:, 0])


def vit_tiny() -> VisionTransformer:
    return VisionTransformer()


# What timm's weights are called here: nn.load_pytorch(path, model, rename=TIMM).
TIMM = {
    "cls_token": "class_token",
    "pos_embed": "positions",
    "patch_embed.proj": "patches",
    "attn": "attention",
    "blocks.*.norm1": "blocks.*.attention_norm",
    "blocks.*.norm2": "blocks.*.out_norm",
    "mlp.fc1": "hidden",
    "mlp.fc2": "out",
}
