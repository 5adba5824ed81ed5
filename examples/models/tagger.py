"""A tagger: a label for each word of a sentence, from a Gru that reads it in both directions."""

import nitinol as nt
from nitinol import nn

PADDING = 0  # of words behind the end of a sentence, and of their tags


class Tagger(nn.Module):
    """Scores of tags, [batch, positions, tags], of words, [batch, positions], of which so many count
    as `lengths` says, [batch]."""

    def __init__(
        self, words: int = 20000, tags: int = 18, width: int = 128, hidden: int = 256
    ) -> None:
        self.words = nn.Embedding(words, width, padding=PADDING)
        self.gru = nn.Gru(width, hidden, layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * hidden, tags)

    def __call__(self, words: nt.Tensor, lengths: nt.Tensor) -> nt.Tensor:
        return self.head(self.gru(self.words(words), lengths=lengths).sequence)


def tagger_loss(scores: nt.Tensor, tags: nt.Tensor) -> nt.Tensor:
    """The mean over all words; tags: [batch, positions]."""
    return nn.cross_entropy(scores, tags, ignore_index=PADDING)
