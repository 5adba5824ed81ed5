"""Writes models.json: names and shapes of state_dicts, and what the models of torch_models.py compute.

    python3 tests/reference/make_models.py   # needs PyTorch; the tests need only the file

Weights and data are a formula of integers (number() below), which tests/examples/models_test.cpp
repeats exactly: float64. Of results a few elements are stored, and the losses of three steps of Adam.
"""

import json
import pathlib

import torch
import torch.nn.functional as F

import torch_models

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def number(k, shape):
    """Numbers from -0.5 to 0.5, others for each k."""
    i = torch.arange(torch.Size(shape).numel(), dtype=torch.int64)
    return (((i * 7919 + k * 104729) % 1009).double() / 1009 - 0.5).reshape(shape)


def classes(shape, limit):
    i = torch.arange(torch.Size(shape).numel())
    return ((i * 7 + i // 3) % limit).reshape(shape)


def fill(model):
    """Sets the state, numbered in its order; its names and shapes."""
    state = {n: v for n, v in model.state_dict().items() if not n.endswith("num_batches_tracked")}
    for k, (name, old) in enumerate(state.items()):
        values = number(k, old.shape)
        if old.dim() > 1:
            values = values * (2 / (old.numel() // old.shape[0]) ** 0.5)
        elif "bias" in name or "mean" in name:
            values = values * 0.1
        else:
            values = 1 + values * 0.1
        state[name] = values
    if hasattr(model, "lm_head"):
        state["lm_head.weight"] = state["transformer.wte.weight"]
    model.load_state_dict(state, strict=False)
    return [[name, list(value.shape)] for name, value in state.items()]


def some(y):
    return y.detach().flatten()[:: max(1, y.numel() // 20)].tolist()


def case(model, inputs, loss_of):
    state = fill(model)
    model.eval()
    result = model(*inputs)
    first = result[0] if isinstance(result, tuple) else result
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = loss_of(model(*inputs))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"state": state, "result": some(first), "losses": losses}


def of_classes(y):
    return lambda scores: F.cross_entropy(scores, y)


def of_rows(y):
    return lambda scores: F.cross_entropy(scores.flatten(0, 1), y.flatten(), ignore_index=0)


images, labels = number(1000, (2, 3, 32, 32)) * 2, classes((2,), 10)
text = classes((2, 9), 50)
lengths = torch.tensor([12, 5, 9])
words = (classes((3, 12), 49) + 1) * (torch.arange(12) < lengths[:, None])
tags = (classes((3, 12), 4) + 1) * (torch.arange(12) < lengths[:, None])
squares, pixels = number(1001, (2, 3, 16, 16)) * 2, number(1002, (4, 36)) + 0.5
cases = {
    "resnet18": case(torch_models.ResNet([1, 1], False, 10, 8), [images], of_classes(labels)),
    "resnet50": case(torch_models.ResNet([1, 2], True, 10, 4), [images], of_classes(labels)),
    "vit": case(torch_models.VisionTransformer(16, 4, 24, 2, 3, 10), [squares], of_classes(labels)),
    "gpt2": case(
        torch_models.Gpt2(50, 32, 24, 3, 2),
        [text[:, :-1]],
        lambda scores: F.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten()),
    ),
    "unet": case(torch_models.UNet(3, 2, 4, 2), [squares], of_classes(classes((2, 16, 16), 2))),
    "tagger": case(torch_models.Tagger(50, 5, 8, 6), [words, lengths], of_rows(tags)),
    "vae": case(
        torch_models.Vae(36, 16, 4),
        [pixels, torch.zeros(4, 4)],
        lambda seen: torch_models.vae_loss(*seen, pixels),
    ),
}
path = pathlib.Path(__file__).with_name("models.json")
path.write_text(json.dumps(cases).replace('"result"', '\n"result"').replace("}, ", "},\n") + "\n")
print(f"{path.name}: {len(cases)} cases, PyTorch {torch.__version__}")
for name, one in cases.items():
    print(f"{name:12} {one['losses'][0]:.6f} ... {one['losses'][-1]:.6f}")
