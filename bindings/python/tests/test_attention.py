"""Attention and transformers: beside PyTorch's where it is installed, compiled, and with caches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import bits, check_compiled
from function_cases import np_attention, np_sinusoidal

import nitinol as nt
from nitinol import nn

untyped: Any = nn  # for what type checkers refuse, too


def drawn(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(np.asarray(a), b.detach().numpy(), rtol=2e-5, atol=2e-6)


def take_attention(ours: nn.MultiHeadAttention, theirs: Any) -> None:
    """PyTorch's weights, [out, in], as ours."""
    assert ours.qkv.bias is not None and ours.proj.bias is not None
    ours.qkv.weight.set(theirs.in_proj_weight.detach().numpy().T)
    ours.proj.weight.set(theirs.out_proj.weight.detach().numpy().T)
    ours.qkv.bias.set(theirs.in_proj_bias.detach().numpy())
    ours.proj.bias.set(theirs.out_proj.bias.detach().numpy())


def take_linear(ours: nn.Linear, theirs: Any) -> None:
    ours.weight.set(theirs.weight.detach().numpy().T)
    assert ours.bias is not None
    ours.bias.set(theirs.bias.detach().numpy())


def take_norm(ours: nn.LayerNorm, theirs: Any) -> None:
    assert ours.weight is not None and ours.bias is not None
    ours.weight.set(theirs.weight.detach().numpy())
    ours.bias.set(theirs.bias.detach().numpy())


@pytest.mark.parametrize("mask", ["none", "of queries", "of keys", "numbers"])
@pytest.mark.parametrize("has_memory", [False, True])
def test_attention_as_pytorchs(mask: str, has_memory: bool) -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    theirs.in_proj_bias.data.normal_()
    theirs.out_proj.bias.data.normal_()
    ours = nn.MultiHeadAttention(8, 2)
    take_attention(ours, theirs)
    x, memory = drawn(3, 4, 8), drawn(3, 5, 8) if has_memory else drawn(3, 4, 8)
    keys = memory.shape[1]
    looks = np.random.default_rng(1).random((4, keys)) < 0.7
    looks[:, 0] = True
    of_keys = np.arange(keys) < np.array([[2], [keys], [3]])
    tx = torch.tensor(x, requires_grad=True)
    ty = torch.tensor(memory, requires_grad=True) if has_memory else tx
    given: dict[str, Any] = {}
    theirs_given: dict[str, Any] = {}
    if mask == "of queries":  # PyTorch's say what is not looked at
        given, theirs_given = {"mask": looks}, {"attn_mask": torch.tensor(~looks)}
    elif mask == "of keys":
        given = {"mask": of_keys[:, None, None, :]}
        theirs_given = {"key_padding_mask": torch.tensor(~of_keys)}
    elif mask == "numbers":
        added = drawn(4, keys)
        given, theirs_given = {"mask": added}, {"attn_mask": torch.tensor(added)}
    expected, _ = theirs(tx, ty, ty, need_weights=False, **theirs_given)
    a, b = nt.parameter(x), nt.parameter(memory)
    if has_memory:
        given["memory"] = b
    result = ours(a, **given)
    close(result, expected)
    (expected**2).sum().backward()
    nt.sum(result**2).backward()
    assert a.grad is not None and ours.qkv.weight.grad is not None
    close(a.grad, tx.grad)
    close(ours.qkv.weight.grad, theirs.in_proj_weight.grad.T)
    if has_memory:
        assert b.grad is not None
        close(b.grad, ty.grad)


@pytest.mark.parametrize("options", [
    {}, {"is_causal": True}, {"scale": 0.3}, {"enable_gqa": True}, {"is_hidden": True},
])  # fmt: skip
def test_scaled_dot_product_attention(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    q, k, v = drawn(2, 4, 5, 6), drawn(2, 4, 5, 6) + 1, drawn(2, 4, 5, 3)
    theirs, ours = dict(options), dict(options)
    if theirs.pop("enable_gqa", False):
        k, v = k[:, :2], v[:, :2]
        ours = {"shares_heads": True}
        theirs["enable_gqa"] = True
    if theirs.pop("is_hidden", False):  # query 2 looks at nothing
        ours.pop("is_hidden")
        looks = np.random.default_rng(0).random((5, 5)) < 0.6
        looks[2] = False
        ours["mask"], theirs["attn_mask"] = looks, torch.tensor(looks)
    tensors = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
    expected = torch.nn.functional.scaled_dot_product_attention(*tensors, **theirs)
    variables = [nt.parameter(x) for x in (q, k, v)]
    result = nn.attention(*variables, **ours)
    close(result, expected)
    (expected**2).sum().backward()
    nt.sum(result**2).backward()
    for ours_of, theirs_of in zip(variables, tensors):
        assert ours_of.grad is not None
        close(ours_of.grad, theirs_of.grad)


def test_causal_queries_are_the_last_ones() -> None:
    """Where PyTorch's are the first."""
    q, k = drawn(2, 3, 6), drawn(2, 5, 6)
    for a, b, block in ((q, k, 0), (k, q, 0), (q, k, 1), (k, q, 2)):
        result = nn.attention(a, b, b, is_causal=True, block=block)
        np.testing.assert_allclose(
            np.asarray(result), np_attention(a, b, b, is_causal=True), rtol=1e-5, atol=1e-6
        )
    of_integers = nn.sinusoidal_positions(np.arange(50), 6)
    assert of_integers.dtype == nt.float32
    np.testing.assert_allclose(np.asarray(of_integers), np_sinusoidal(np.arange(50), 6), atol=1e-6)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_transformer_layers_as_pytorchs(norm_first: bool, activation: Any) -> None:
    torch = pytest.importorskip("torch")
    x, memory = drawn(2, 4, 8), drawn(2, 5, 8)
    options = {"activation": activation, "norm_first": norm_first, "batch_first": True}
    encoder = torch.nn.TransformerEncoderLayer(8, 2, 16, 0.1, **options).eval()
    ours = nn.TransformerEncoderLayer(8, 2, 16, activation=activation, norm_first=norm_first)
    ours.eval()
    take_attention(ours.attention, encoder.self_attn)
    take_linear(ours.hidden, encoder.linear1)
    take_linear(ours.out, encoder.linear2)
    take_norm(ours.attention_norm, encoder.norm1)
    take_norm(ours.out_norm, encoder.norm2)
    close(ours(x), encoder(torch.tensor(x)))

    decoder = torch.nn.TransformerDecoderLayer(8, 2, 16, 0.1, **options).eval()
    mine = nn.TransformerDecoderLayer(8, 2, 16, activation=activation, norm_first=norm_first)
    mine.eval()
    take_attention(mine.attention, decoder.self_attn)
    take_attention(mine.memory_attention, decoder.multihead_attn)
    take_linear(mine.hidden, decoder.linear1)
    take_linear(mine.out, decoder.linear2)
    take_norm(mine.attention_norm, decoder.norm1)
    take_norm(mine.memory_norm, decoder.norm2)
    take_norm(mine.out_norm, decoder.norm3)
    later = torch.nn.Transformer.generate_square_subsequent_mask(4)
    expected = decoder(torch.tensor(x), torch.tensor(memory), tgt_mask=later)
    close(mine(x, memory), expected)


def test_layers_of_layers_have_modes_and_settings() -> None:
    layer = nn.TransformerDecoderLayer(8, 2, 16)
    assert list(layer.named_variables())[:4] == [
        "attention.qkv.weight", "attention.qkv.bias", "attention.proj.weight",
        "attention.proj.bias",
    ]  # fmt: skip
    assert layer.attention.is_causal and not layer.memory_attention.is_causal
    assert layer.attention.dropout == 0.1 and layer.dropout.rate == 0.1
    x = nt.random.randn((2, 4, 8))
    assert bits(layer(x, x)) != bits(layer(x, x))
    layer.eval()
    assert not layer.attention.training and not layer.dropout.training
    assert bits(layer(x, x)) == bits(layer(x, x))


def test_positions_come_one_after_another() -> None:
    layer = nn.MultiHeadAttention(8, 4, key_heads=2, is_causal=True, rotary_base=10000.0)
    x = nt.random.randn((2, 12, 8))
    with nt.no_gradients():
        whole = layer(x)

        def run(step: Any) -> nt.Tensor:
            cache = nn.KeyValueCache(2, 2, 16, 2)
            parts = [step(x[:, :4], cache)]
            parts += [step(x[:, i : i + 1], cache) for i in range(4, 12)]
            assert int(cache.length) == 12
            return nt.concat(parts, axis=1)

        def step(part: nt.Tensor, cache: nn.KeyValueCache) -> nt.Tensor:
            return layer(part, cache=cache)

        compiled = nt.compile(step, check="never")
        eager = run(step)
        np.testing.assert_allclose(np.asarray(eager), np.asarray(whole), rtol=1e-4, atol=1e-5)
        for _ in range(4):  # of a prompt of 4 positions and 8 more, in a cache of its own
            assert bits(run(compiled)) == bits(eager)
        check_compiled(compiled, 4 * 9 - 6)
        assert len(compiled.explain()["signatures"]) == 2
        with pytest.raises(ValueError, match="the cache is full"):
            layer(nt.concat([x, x], axis=1), cache=nn.KeyValueCache(2, 2, 16, 2))


@pytest.mark.parametrize("call, text", [
    (lambda: nn.MultiHeadAttention(8, 4, key_heads=3), "3 heads of keys for 4 of queries"),
    (lambda: nn.MultiHeadAttention(8, 4, dropout=1.0), "the setting `dropout`"),
    (lambda: nn.TransformerEncoderLayer(8, 4, 0), "TransformerEncoderLayer: the setting `hidden`"),
    (lambda: untyped.TransformerEncoderLayer(8, 4, 8, activation="swish"), '"relu", "gelu"'),
    (lambda: nn.KeyValueCache(1, 0, 4, 4), "KeyValueCache: the setting `heads`"),
    (lambda: nn.attention(nt.ones((3, 4)), nt.ones((3, 4)), nt.ones((3, 4)),
                          mask=nt.ones((2, 3), dtype="bool")), "3 queries, 3 keys"),
])  # fmt: skip
def test_what_attention_refuses(call: Any, text: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert text in str(error.value)
