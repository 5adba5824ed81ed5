"""The models of examples/models in PyTorch, named as torchvision, timm and Hugging Face name theirs.

make_models.py records what they compute; the Python package's tests compare with them where PyTorch is.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class ResidualBlock(nn.Module):
    def __init__(self, before, width, stride, is_bottleneck):
        super().__init__()
        after = 4 * width if is_bottleneck else width
        sizes = (
            [(before, width, 1, 1), (width, width, 3, stride), (width, after, 1, 1)]
            if is_bottleneck
            else [(before, width, 3, stride), (width, width, 3, 1)]
        )
        for i, (a, b, kernel, step) in enumerate(sizes, 1):
            conv = nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False)
            setattr(self, f"conv{i}", conv)
            setattr(self, f"bn{i}", nn.BatchNorm2d(b))
        self.count, self.downsample = len(sizes), None
        if before != after or stride != 1:
            shortcut = nn.Conv2d(before, after, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(after))

    def forward(self, x):
        y = x
        for i in range(1, self.count + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            if i < self.count:
                y = F.relu(y)
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, blocks, is_bottleneck, classes, width):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        channels = width
        for i, count in enumerate(blocks):
            stage = []
            for k in range(count):
                stride = 2 if i > 0 and k == 0 else 1
                stage.append(ResidualBlock(channels, width << i, stride, is_bottleneck))
                channels = (width << i) * (4 if is_bottleneck else 1)
            setattr(self, f"layer{i + 1}", nn.Sequential(*stage))
        self.stages = len(blocks)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        y = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        for i in range(self.stages):
            y = getattr(self, f"layer{i + 1}")(y)
        return self.fc(y.mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, positions, width = x.shape
        parts = self.qkv(x).reshape(n, positions, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        joined = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        return self.proj(joined.reshape(x.shape))


class VitBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.mlp = nn.ModuleDict(
            {"fc1": nn.Linear(width, 4 * width), "fc2": nn.Linear(4 * width, width)}
        )

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp["fc2"](F.gelu(self.mlp["fc1"](self.norm2(x))))


class VisionTransformer(nn.Module):
    def __init__(self, size, patch, width, depth, heads, classes):
        super().__init__()
        self.cls_token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, width, patch, patch)})
        self.blocks = nn.ModuleList(VitBlock(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        y = self.patch_embed["proj"](x).flatten(2).transpose(1, 2)
        y = torch.cat([self.cls_token.expand(len(y), -1, -1), y], 1) + self.pos_embed
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y)[:, 0])


class Conv1D(nn.Module):
    """Hugging Face's: a Linear whose weight is [in, out]."""

    def __init__(self, before, after):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(before, after) * 0.1)
        self.bias = nn.Parameter(torch.randn(after) * 0.1)

    def forward(self, x):
        return x @ self.weight + self.bias


class Gpt2Block(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.ModuleDict(
            {"c_attn": Conv1D(width, 3 * width), "c_proj": Conv1D(width, width)}
        )
        self.attn.register_buffer("bias", torch.ones(context, context).tril())
        self.mlp = nn.ModuleDict(
            {"c_fc": Conv1D(width, 4 * width), "c_proj": Conv1D(4 * width, width)}
        )

    def forward(self, x):
        n, positions, width = x.shape
        q, k, v = (
            one.reshape(n, positions, self.heads, -1).transpose(1, 2)
            for one in self.attn["c_attn"](self.ln_1(x)).split(width, -1)
        )
        joined = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
        x = x + self.attn["c_proj"](joined.reshape(x.shape))
        hidden = F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh")
        return x + self.mlp["c_proj"](hidden)


class Gpt2(nn.Module):
    def __init__(self, tokens, context, width, heads, depth):
        super().__init__()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(tokens, width),
                "wpe": nn.Embedding(context, width),
                "h": nn.ModuleList(Gpt2Block(width, heads, context) for _ in range(depth)),
                "ln_f": nn.LayerNorm(width),
            }
        )
        self.lm_head = nn.Linear(width, tokens, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, x):
        parts = self.transformer
        y = parts["wte"](x) + parts["wpe"].weight[: x.shape[1]]
        for block in parts["h"]:
            y = block(y)
        return self.lm_head(parts["ln_f"](y))


class Convs(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(after)
        self.second = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(after)

    def forward(self, x):
        y = F.relu(self.first_norm(self.first(x)))
        return F.relu(self.second_norm(self.second(y)))


class Up(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.enlarge = nn.ConvTranspose2d(before, after, 2, 2)
        self.convs = Convs(before, after)

    def forward(self, x, kept):
        return self.convs(torch.cat([kept, self.enlarge(x)], 1))


class UNet(nn.Module):
    def __init__(self, channels, classes, width, depth):
        super().__init__()
        self.first = Convs(channels, width)
        self.down = nn.ModuleList(Convs(width << i, width << i + 1) for i in range(depth))
        self.up = nn.ModuleList(Up(width << i + 1, width << i) for i in reversed(range(depth)))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        kept = [self.first(x)]
        for down in self.down:
            kept.append(down(F.max_pool2d(kept[-1], 2)))
        y = kept.pop()
        for up in self.up:
            y = up(y, kept.pop())
        return self.head(y)


class Tagger(nn.Module):
    def __init__(self, words, tags, width, hidden):
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.gru = nn.GRU(width, hidden, 2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * hidden, tags)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(
            self.words(words), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        y, _ = pad_packed_sequence(
            self.gru(packed)[0], batch_first=True, total_length=words.shape[1]
        )
        return self.head(y)


class Vae(nn.Module):
    def __init__(self, pixels, hidden, code):
        super().__init__()
        self.encode = nn.Linear(pixels, hidden)
        self.mean, self.log_variance = nn.Linear(hidden, code), nn.Linear(hidden, code)
        self.decode, self.out = nn.Linear(code, hidden), nn.Linear(hidden, pixels)

    def forward(self, x, noise):
        hidden = F.relu(self.encode(x))
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        code = mean + noise * torch.exp(log_variance / 2)
        return self.out(F.relu(self.decode(code))), mean, log_variance


def vae_loss(logits, mean, log_variance, x):
    pixels = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    code = -0.5 * torch.sum(1 + log_variance - mean**2 - log_variance.exp())
    return (pixels + code) / len(x)


def loss_of(name, result, wanted):
    """What the model of that name of examples/models is trained by."""
    if name == "vae":
        return vae_loss(*result, wanted)
    if name in ("gpt2", "tagger"):
        ignored = 0 if name == "tagger" else -100
        return F.cross_entropy(result.flatten(0, 1), wanted.flatten(), ignore_index=ignored)
    return F.cross_entropy(result, wanted)
