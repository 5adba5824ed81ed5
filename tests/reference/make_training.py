"""Writes training.json: the losses of 20 training steps of the examples' models in PyTorch, float64.

    python3 tests/reference/make_training.py   # needs PyTorch; the tests need only the file

Nothing but losses is stored. Weights and data are a formula of integers (number() below), which
tests/examples/training_test.cpp repeats exactly.
"""

import json
import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def number(k, count):
    """Numbers from -0.5 to 0.5, others for each k."""
    i = torch.arange(count, dtype=torch.int64)
    return ((i * 7919 + k * 104729) % 1009).double() / 1009 - 0.5


def fill(model):
    """Sets the parameters, numbered in order of declaration. Nitinol's matrices are [in, out]."""
    for k, (name, p) in enumerate(model.named_parameters()):
        is_table = name.split(".")[0] in ("characters", "positions")
        shape = p.shape[::-1] if p.dim() == 2 and not is_table else p.shape
        values = number(k, p.numel()).reshape(shape)
        if p.dim() == 2:
            values = values * (2 / shape[0] ** 0.5)
        elif p.dim() == 4:  # [out, in, height, width] in both
            values = values * (2 / (p.numel() // p.shape[0]) ** 0.5)
        elif "bias" in name:
            values = values * 0.1
        else:
            values = 1 + values * 0.1
        with torch.no_grad():
            p.copy_(values.T if p.dim() == 2 and not is_table else values)


def train(model, x, y):
    fill(model)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        scores = model(x)
        loss = F.cross_entropy(scores.reshape(-1, scores.shape[-1]), y.reshape(-1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(4, 64), nn.Linear(64, 10)

    def forward(self, x):
        return self.out(self.lstm(x.reshape(-1, 25, 4).transpose(0, 1))[1][0][0])


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.before_mlp = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, positions, width = x.shape
        parts = self.qkv(self.before_attention(x))
        parts = parts.reshape(batch, positions, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        joined = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
        x = x + self.proj(joined.reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.before_mlp(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, characters, context, width, heads, blocks):
        super().__init__()
        self.characters = nn.Embedding(characters, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters)

    def forward(self, x):
        y = self.characters(x) + self.positions.weight[: x.shape[1]]
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y))


def classes(count, limit):
    i = torch.arange(count)
    return (i * 7 + i // 3) % limit


x, y = number(1000, 64 * 100).reshape(64, 100) * 3.5, classes(64, 10)
recurrent = Recurrent()
# Nitinol's Lstm has one bias; PyTorch's two would each be moved.
with torch.no_grad():
    recurrent.lstm.bias_hh_l0.zero_()
second_bias = recurrent.lstm.bias_hh_l0
recurrent.lstm._parameters.pop("bias_hh_l0")
recurrent.lstm.bias_hh_l0 = second_bias.detach()

letters = classes(4 * 8, 11)
cases = {
    "digits_mlp": train(
        nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)),
        number(1001, 64 * 64).reshape(64, 64) + 0.5,
        y,
    ),
    "digits_cnn": train(
        nn.Sequential(
            nn.Unflatten(1, (1, 8, 8)),
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(512, 10),
        ),
        number(1001, 16 * 64).reshape(16, 64) + 0.5,
        classes(16, 10),
    ),
    "small": train(nn.Sequential(nn.Linear(100, 128), nn.ReLU(), nn.Linear(128, 10)), x, y),
    "normalised": train(
        nn.Sequential(
            nn.Linear(100, 256),
            nn.BatchNorm1d(256),
            nn.ReLU(),
            nn.Dropout(0),
            nn.Linear(256, 128),
            nn.BatchNorm1d(128),
            nn.ReLU(),
            nn.Dropout(0),
            nn.Linear(128, 10),
        ),
        x,
        y,
    ),
    "recurrent": train(recurrent, x, y),
    "gpt": train(
        Gpt(11, 8, 16, 2, 2), letters.reshape(4, 8), ((letters * 3 + 1) % 11).reshape(4, 8)
    ),
}
path = pathlib.Path(__file__).with_name("training.json")
path.write_text(json.dumps(cases).replace("], ", "],\n") + "\n")
print(f"{path.name}: {len(cases)} cases, PyTorch {torch.__version__}")
for name, losses in cases.items():
    print(f"{name:12} {losses[0]:.6f} ... {losses[-1]:.6f}")
