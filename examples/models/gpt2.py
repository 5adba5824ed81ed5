"""GPT-2 (A. Radford et al., 2019): what the next token is, given those before it."""

import nitinol as nt
from nitinol import nn


class Block(nn.Module):
    """Attention to what came before and two layers for each position; each is added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        self.attention_norm = nn.LayerNorm(width)
        self.attention = nn.MultiHeadAttention(width, heads, is_causal=True)
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def __call__(self, x: nt.Tensor, cache: nn.KeyValueCache | None) -> nt.Tensor:
        y = x + self.attention(self.attention_norm(x), cache=cache)
        return y + self.down(nt.gelu_tanh(self.up(self.norm(y))))


class Gpt2(nn.Module):
    """Scores of each token's successor, [batch, positions, tokens]. x: [batch, positions], numbers
    of tokens; with caches, of those that follow what the caches have seen."""

    def __init__(
        self,
        tokens: int = 50257,
        context: int = 1024,
        width: int = 768,
        heads: int = 12,
        depth: int = 12,
    ) -> None:
        self.context, self.width, self.heads = context, width, heads
        self.tokens = nn.Embedding(tokens, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = [Block(width, heads) for _ in range(depth)]
        self.norm = nn.LayerNorm(width)
        for table in (self.tokens, self.positions):
            table.weight.set(nn.normal(table.weight.shape, deviation=0.02))

    def __call__(self, x: nt.Tensor, caches: list[nn.KeyValueCache] = []) -> nt.Tensor:
        positions = nt.arange(x.shape[1])
        if caches:
            positions = positions + caches[0].length
        y = self.tokens(x) + self.positions(positions)
        for i, block in enumerate(self.blocks):
            y = block(y, caches[i] if caches else None)
        return self.norm(y) @ self.tokens.weight.T  # tied: the head has no weights of its own

    def caches(self, batch: int, positions: int) -> list[nn.KeyValueCache]:
        each = self.width // self.heads
        return [nn.KeyValueCache(batch, self.heads, positions, each) for _ in self.blocks]


def next_tokens(model: Gpt2, caches: list[nn.KeyValueCache], x: nt.Tensor) -> nt.Tensor:
    """The likeliest after x, [batch, 1]: a function for compile(), which has a Plan for prompts of
    each length and one for all tokens behind them."""
    return nt.argmax(model(x, caches)[:, -1], axis=-1, keepdims=True)


def gpt2_small() -> Gpt2:
    return Gpt2()


# What the weights of Hugging Face are called here: nn.load_pytorch(path, model, **HUGGING_FACE).
HUGGING_FACE = {
    "rename": {
        "transformer": "",
        "wte": "tokens",
        "wpe": "positions",
        "h": "blocks",
        "ln_1": "attention_norm",
        "attn.c_attn": "attention.qkv",
        "attn.c_proj": "attention.proj",
        "ln_2": "norm",
        "mlp.c_fc": "up",
        "mlp.c_proj": "down",
        "ln_f": "norm",
    },
    "untransposed": ["c_attn", "c_proj", "c_fc"],
    "unused": ["lm_head", "attn.bias", "attn.masked_bias"],
}
