"""PyTorch's gradients at special points: the table in tests/autograd/special_points_test.cpp.

python tests/reference/make_special_gradients.py
"""

import torch

inf = float("inf")


def show(name, f, *points):
    inputs = [torch.tensor(p, dtype=torch.float64, requires_grad=True) for p in points]
    f(*inputs).sum().backward()
    print(name, [i.grad.tolist() for i in inputs])


show("abs", torch.abs, [0.0, -0.0, -2.0])
show("relu", torch.relu, [0.0, -0.0, 1.0])
show("sign", torch.sign, [0.0, 3.0])
show("sqrt", torch.sqrt, [0.0, 4.0])
show("log", torch.log, [0.0, 2.0])
show("maximum", torch.maximum, [1.0, 0.0, 2.0], [1.0, -0.0, 1.0])
show("minimum", torch.minimum, [1.0, 0.0, 2.0], [1.0, -0.0, 1.0])
show("clamp", lambda x: torch.clamp(x, -1, 1), [-1.0, 1.0, 0.0, -2.0, 2.0])
show("max", lambda x: torch.amax(x, 0), [3.0, 1.0, 3.0])
show("min", lambda x: torch.amin(x, 0), [1.0, 1.0, 3.0])
show("pow", torch.pow, [0.0, 0.0, 0.0, 0.0, 2.0], [2.0, 1.0, 0.0, 0.5, 0.0])
show("prod", lambda x: torch.prod(x, 0), [0.0, 2.0, 3.0])
show("prod zeros", lambda x: torch.prod(x, 0), [0.0, 0.0, 3.0])
show("where", lambda x: torch.where(x > 0, x, -x), [0.0, 2.0, -2.0])
show("var", lambda x: torch.var(x, correction=0), [2.0, 2.0])
show("std", lambda x: torch.std(x, correction=0), [2.0, 2.0])
show("softplus", torch.nn.functional.softplus, [0.0, 800.0, -800.0])
show("gelu", torch.nn.functional.gelu, [0.0, 40.0, -40.0])
show("sigmoid", torch.sigmoid, [0.0, 800.0, -800.0])
show("tanh", torch.tanh, [0.0, 800.0, -800.0])
show("logsumexp", lambda x: torch.logsumexp(x, 0), [-inf, 0.0])
show("floor", torch.floor, [1.0, 1.5])
show("remainder", torch.remainder, [4.0, 5.0], [2.0, 2.0])
show("copysign", torch.copysign, [0.0, 2.0], [1.0, -1.0])
show(
    "atleast huber",
    lambda x: torch.nn.functional.huber_loss(
        x, torch.zeros(3, dtype=torch.float64), reduction="sum"
    ),
    [1.0, 0.0, -1.0],
)

F = torch.nn.functional
show("leaky_relu", lambda x: F.leaky_relu(x, 0.2), [0.0, -0.0, -2.0, inf])
show("elu", lambda x: F.elu(x, 0.5), [0.0, -0.0, -1000.0, 2.0])
show("celu", lambda x: F.celu(x, 0.5), [0.0, -1000.0, 2.0])
show("hardsigmoid", lambda x: F.hardsigmoid(x) * 6, [-3.0, 3.0, 0.0, 4.0])
show("hardswish", F.hardswish, [-3.0, 3.0, 0.0, 4.0, -4.0])
show("hardtanh", F.hardtanh, [-1.0, 1.0, 0.0, 2.0])
show("relu6", F.relu6, [0.0, 6.0, 1.0])
show("hardshrink", F.hardshrink, [0.5, -0.5, 0.0, 1.0])
show("softshrink", F.softshrink, [0.5, -0.5, 0.0, 1.0, -2.0])
show("softsign", F.softsign, [0.0, -0.0, -1.0])
show("mish", F.mish, [0.0, 1000.0, -1000.0])
show("prelu", F.prelu, [0.0, -3.0, 2.0], [0.25])


def of_one(loss, y):
    return lambda x: loss(x, torch.full(x.shape, y, dtype=torch.float64), reduction="sum")


show("smooth_l1_loss", of_one(F.smooth_l1_loss, 0.0), [1.0, 0.0, -1.0])
show("hinge_embedding_loss", of_one(F.hinge_embedding_loss, -1.0), [1.0, 0.0])
