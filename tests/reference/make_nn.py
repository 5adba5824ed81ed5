"""Writes nn.json: what PyTorch gives for layers, losses and optimizers, in float64.

    python3 tests/reference/make_nn.py        # needs PyTorch; the tests need only the file

Every case is {name: {"shape": [...], "data": [...]}}: inputs, weights, results and gradients.
"""

import json
import pathlib

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
cases = {}


def store(case, **tensors):
    cases[case] = {
        name: {"shape": list(t.shape), "data": t.detach().reshape(-1).tolist()}
        for name, t in tensors.items()
    }


def leaf(*shape, scale=1.0):
    return (torch.randn(*shape) * scale).requires_grad_()


def backward(y):
    """Gradients of a fixed weighting of the elements."""
    weights = torch.cos(torch.arange(y.numel(), dtype=torch.float64) * 1.7 + 0.3).reshape(y.shape)
    (y * weights).sum().backward()


# ---- layers

x, w, b = leaf(2, 3, 4), leaf(4, 5), leaf(5)
y = x @ w + b
backward(y)
store("linear", x=x, w=w, b=b, y=y, dx=x.grad, dw=w.grad, db=b.grad)

x, w, b = leaf(3, 6), leaf(6), leaf(6)
y = F.layer_norm(x, (6,), w, b, 1e-5)
backward(y)
store("layer_norm", x=x, w=w, b=b, y=y, dx=x.grad, dw=w.grad, db=b.grad)

x, w = leaf(3, 6), leaf(6)
y = F.rms_norm(x, (6,), w, 1e-6)
backward(y)
store("rms_norm", x=x, w=w, y=y, dx=x.grad, dw=w.grad)

for name, shape in (("batch_norm", (7, 3)), ("batch_norm_2d", (4, 3, 2, 5))):
    norm = torch.nn.BatchNorm1d(3) if len(shape) == 2 else torch.nn.BatchNorm2d(3)
    with torch.no_grad():
        norm.weight.copy_(torch.randn(3))
        norm.bias.copy_(torch.randn(3))
    x = leaf(*shape)
    y = norm(x)
    backward(y)
    norm.eval()
    store(
        name,
        x=x,
        w=norm.weight,
        b=norm.bias,
        y=y,
        dx=x.grad,
        dw=norm.weight.grad,
        db=norm.bias.grad,
        mean=norm.running_mean,
        var=norm.running_var,
        eval=norm(x),
    )

cell = torch.nn.LSTM(3, 4)
x = leaf(5, 2, 3)
y, (h, c) = cell(x)
backward(y)
store(
    "lstm",
    x=x,
    wi=cell.weight_ih_l0.T,
    wh=cell.weight_hh_l0.T,
    b=cell.bias_ih_l0 + cell.bias_hh_l0,
    y=y,
    h=h[0],
    c=c[0],
    dx=x.grad,
    dwi=cell.weight_ih_l0.grad.T,
    dwh=cell.weight_hh_l0.grad.T,
    db=cell.bias_ih_l0.grad,
)

for name, causal in (("attention", False), ("attention_causal", True)):
    q, k, v = leaf(2, 2, 4, 3), leaf(2, 2, 4, 3), leaf(2, 2, 4, 3)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    backward(y)
    store(name, q=q, k=k, v=v, y=y, dq=q.grad, dk=k.grad, dv=v.grad)

# ---- activations

x = leaf(40, scale=2.0)
for name, f in (
    ("gelu", F.gelu),
    ("gelu_tanh", lambda t: F.gelu(t, approximate="tanh")),
    ("silu", F.silu),
    ("softplus", F.softplus),
    ("relu", F.relu),
):
    x.grad = None
    y = f(x)
    backward(y)
    store(name, x=x, y=y, dx=x.grad)

# ---- losses

x = leaf(6, 5)
classes = torch.tensor([0, 4, 2, 2, 1, 3])
soft = torch.softmax(torch.randn(6, 5), -1)
real = torch.randn(6, 5)
share = torch.rand(6, 5)
for name, f in {
    "cross_entropy": lambda: F.cross_entropy(x, classes),
    "cross_entropy_smooth": lambda: F.cross_entropy(x, classes, label_smoothing=0.1),
    "cross_entropy_soft": lambda: F.cross_entropy(x, soft),
    "mse": lambda: F.mse_loss(x, real),
    "l1": lambda: F.l1_loss(x, real),
    "huber": lambda: F.huber_loss(x, real, delta=0.7),
    "bce": lambda: F.binary_cross_entropy_with_logits(x, share),
}.items():
    x.grad = None
    y = f()
    y.backward()
    store(name, x=x, classes=classes.double(), soft=soft, real=real, share=share, y=y, dx=x.grad)

# ---- optimizers: 5 steps on f(p) = sum(sin(p) * a), parameters after each step

start, a = torch.randn(2, 3), torch.randn(2, 3)
for name, make in {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd_momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "sgd_nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.05),
    "adam_decay": lambda p: torch.optim.Adam(p, lr=0.05, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.05),
    "rmsprop_momentum": lambda p: torch.optim.RMSprop(p, lr=0.05, momentum=0.9, weight_decay=0.01),
}.items():
    p = start.clone().requires_grad_()
    optimizer, path = make([p]), []
    for _ in range(5):
        optimizer.zero_grad()
        (torch.sin(p) * a).sum().backward()
        optimizer.step()
        path.append(p.detach().clone())
    store("optimizer_" + name, start=start, a=a, path=torch.stack(path))

p, q = leaf(3), leaf(2, 2)
p.grad, q.grad = torch.randn(3) * 3, torch.randn(2, 2) * 3
before = (p.grad.clone(), q.grad.clone())
norm = torch.nn.utils.clip_grad_norm_([p, q], 1.5)
store("clip_norm", p=before[0], q=before[1], norm=norm, cp=p.grad, cq=q.grad)

# ---- images

for name, shape, weight, options in (
    ("conv2d", (2, 3, 6, 5), (4, 3, 3, 2), {}),
    ("conv2d_padded", (2, 3, 6, 5), (4, 3, 3, 3), {"stride": (2, 1), "padding": (1, 2)}),
    ("conv2d_groups", (1, 4, 7, 6), (6, 2, 2, 3), {"dilation": (1, 2), "groups": 2}),
    ("conv2d_depthwise", (2, 3, 5, 5), (3, 1, 3, 3), {"padding": 1, "groups": 3}),
):
    x, w, b = leaf(*shape), leaf(*weight), leaf(weight[0])
    y = F.conv2d(x, w, b, **options)
    backward(y)
    store(name, x=x, w=w, b=b, y=y, dx=x.grad, dw=w.grad, db=b.grad)

for name, f in {
    "max_pool": lambda: F.max_pool2d(x, 2),
    "max_pool_padded": lambda: F.max_pool2d(x, (3, 2), (2, 1), 1),
    "avg_pool": lambda: F.avg_pool2d(x, 2),
    "avg_pool_padded": lambda: F.avg_pool2d(x, 3, 2, 1),
    "avg_pool_uncounted": lambda: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
}.items():
    x = leaf(2, 3, 6, 7)
    with torch.no_grad():
        x.copy_(torch.round(x * 2) / 2)  # so that there are equal elements
    y = f()
    backward(y)
    store(name, x=x, y=y, dx=x.grad)

path = pathlib.Path(__file__).with_name("nn.json")
path.write_text(json.dumps(cases, separators=(",", ":")).replace('},"', '},\n"') + "\n")
print(f"{path.name}: {len(cases)} cases, PyTorch {torch.__version__}")
