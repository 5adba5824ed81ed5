"""Recurrent layers: beside PyTorch's where it is installed, and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import bits, check_compiled

import nitinol as nt
from nitinol import nn

untyped: Any = nn  # for what type checkers refuse, too
KINDS: dict[str, Any] = {
    "LSTM": lambda **options: nn.Lstm(3, 4, **options),
    "GRU": lambda **options: nn.Gru(3, 4, **options),
    "RNN": lambda **options: nn.Rnn(3, 4, **options),
}


def drawn(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(np.asarray(a), b.detach().numpy(), rtol=2e-5, atol=2e-6)


def take_weights(ours: Any, theirs: Any) -> None:
    """PyTorch's, [out, in], of which most cells here have one bias for its two."""
    for side, cells in (("", ours.layers), ("_reverse", ours.backward_layers)):
        for i, cell in enumerate(cells):
            of = {n: getattr(theirs, f"{n}_l{i}{side}").detach().numpy()
                  for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}  # fmt: skip
            cell.input_weight.set(of["weight_ih"].T)
            cell.hidden_weight.set(of["weight_hh"].T)
            if hasattr(cell, "hidden_bias"):
                cell.bias.set(of["bias_ih"])
                cell.hidden_bias.set(of["bias_hh"])
            else:
                cell.bias.set(of["bias_ih"] + of["bias_hh"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers, is_bidirectional", [(1, False), (1, True), (2, True), (3, False)])
@pytest.mark.parametrize("has_lengths", [False, True])
def test_as_pytorchs(kind: str, layers: int, is_bidirectional: bool, has_lengths: bool) -> None:
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.nn, kind)(3, 4, layers, bidirectional=is_bidirectional, batch_first=True)
    ours = KINDS[kind](layers=layers, bidirectional=is_bidirectional, batch_first=True)
    take_weights(ours, theirs)
    x = drawn(2, 5, 3)
    first = drawn(layers * (1 + is_bidirectional), 2, 4)
    lengths = np.array([3, 5])
    t = torch.tensor(x, requires_grad=True)
    h = torch.tensor(first, requires_grad=True)
    state = (h, torch.tensor(first) * 2) if kind == "LSTM" else h
    given: Any = t
    if has_lengths:
        given = torch.nn.utils.rnn.pack_padded_sequence(
            t, torch.tensor(lengths), batch_first=True, enforce_sorted=False
        )
    sequence, last = theirs(given, state)
    if has_lengths:
        sequence, _ = torch.nn.utils.rnn.pad_packed_sequence(sequence, batch_first=True)
    a, b = nt.parameter(x), nt.parameter(first)
    states = (b, first * 2) if kind == "LSTM" else (b,)
    out = ours(a, *states, lengths=lengths if has_lengths else None)
    close(out.sequence, sequence)
    close(out.hidden, last[0] if kind == "LSTM" else last)
    if kind == "LSTM":
        close(out.cell, last[1])
    ((sequence**2).sum() + (last[0] ** 2).sum()).backward()
    of_last = out.hidden if kind == "LSTM" else out.hidden[0]
    (nt.sum(out.sequence**2) + nt.sum(of_last**2)).backward()
    assert a.grad is not None and b.grad is not None
    close(a.grad, t.grad)
    close(b.grad, h.grad)
    close(ours.layers[0].hidden_weight.grad, theirs.weight_hh_l0.grad.T)


@pytest.mark.parametrize("kind", KINDS)
def test_one_plan_for_all_lengths(kind: str) -> None:
    layer = KINDS[kind](layers=2, bidirectional=True, dropout=0.5)
    assert "backward_layers.1.hidden_weight" in layer.named_variables()
    x = nt.random.randn((6, 2, 3))
    layer.eval()

    def last(lengths: nt.Tensor) -> nt.Tensor:
        hidden: nt.Tensor = layer(x, lengths=lengths).hidden
        return hidden

    compiled = nt.compile(last, check="never")
    for i in range(1, 7):
        lengths = nt.asarray([i, 7 - i])
        assert bits(compiled(lengths)) == bits(last(lengths))
    check_compiled(compiled, 4)
    assert len(compiled.explain()["signatures"]) == 1
    layer.train()
    assert bits(last(nt.asarray([6, 6]))) != bits(last(nt.asarray([6, 6])))


def test_cells() -> None:
    x = nt.random.randn((2, 3))
    for cell in (nn.GruCell(3, 4), nn.RnnCell(3, 4, activation="relu")):
        layer: Any = nn.Gru(3, 4) if isinstance(cell, nn.GruCell) else nn.Rnn(3, 4, "relu")
        layer.layers[0] = cell
        close_to = np.asarray(layer(nt.stack([x, x])).hidden[0])
        np.testing.assert_allclose(np.asarray(cell(x, cell(x))), close_to, rtol=1e-5, atol=1e-6)
    lstm = nn.LstmCell(3, 4)
    hidden, cell_state = lstm(x)
    again = lstm(x, hidden, cell_state)
    assert again.hidden.shape == again.cell.shape == (2, 4)
    with pytest.raises(TypeError, match="both"):
        lstm(x, hidden)
    with pytest.raises(ValueError, match='"relu", "gelu", "tanh"'):
        untyped.Rnn(3, 4, activation="elu")
    with pytest.raises(ValueError, match="tanh or relu"):
        nn.RnnCell(3, 4, activation="gelu")
