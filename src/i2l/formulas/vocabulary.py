"""Tokens to ids and back. Ids are positions in one list, which is kept in a JSON file.

A vocabulary grows by appending: tokens keep their ids, so that trained weights carry over. Nothing unknown
gets an id.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from i2l.errors import I2LError
from i2l.files import atomic_write

EOS = "<eos>"  # ends every formula; its id is also the padding
BOS = "<bos>"  # stands before the first token
SPECIAL_TOKENS = (EOS, BOS)
FORMAT = "i2l-vocabulary-1"


class UnknownTokenError(I2LError):
    """A token that the vocabulary does not hold."""

    def __init__(self, token: str) -> None:
        super().__init__(f"Token {token!r} is not in the vocabulary: build it from data that has the token.")
        self.token = token


class VocabularyError(I2LError):
    """A vocabulary file that cannot be used."""


class Vocabulary:
    """An ordered set of tokens; the special ones come first, so eos and padding are id 0 and bos is id 1."""

    eos_id = 0
    bos_id = 1

    def __init__(self, tokens: Sequence[str]) -> None:
        """Take all tokens in id order, the special ones included.

        Raises:
            VocabularyError: if a token repeats, is empty or holds white space, or a special one is missing.
        """
        self.tokens = tuple(tokens)
        if self.tokens[: len(SPECIAL_TOKENS)] != SPECIAL_TOKENS:
            raise VocabularyError(f"A vocabulary starts with {', '.join(SPECIAL_TOKENS)}; this one does not.")
        self._ids = {token: index for index, token in enumerate(self.tokens)}
        if len(self._ids) != len(self.tokens):
            raise VocabularyError("A vocabulary holds each token once; this one repeats a token.")
        for token in self.tokens:
            if not token or token.split() != [token]:
                raise VocabularyError(f"Not a token: {token!r} (empty, or with white space in it).")

    @classmethod
    def from_formula_tokens(cls, tokens: Iterable[str]) -> "Vocabulary":
        """Build the vocabulary of a set of ordinary tokens: sorted by code point, after the special ones."""
        return cls((*SPECIAL_TOKENS, *sorted(set(tokens))))

    def grown(self, tokens: Iterable[str]) -> "Vocabulary":
        """Return a vocabulary in which every token keeps its id and the new ones come behind, sorted."""
        return Vocabulary((*self.tokens, *sorted(set(tokens) - self._ids.keys())))

    def begins(self, other: "Vocabulary") -> bool:
        """Tell whether the other vocabulary has all of these tokens with the same ids."""
        return other.tokens[: len(self.tokens)] == self.tokens

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.tokens == other.tokens

    def __hash__(self) -> int:
        return hash(self.tokens)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the id of each token, without bos or eos.

        Raises:
            UnknownTokenError: for a token that is not in the vocabulary.
        """
        try:
            return [self._ids[token] for token in tokens]
        except KeyError as error:
            raise UnknownTokenError(error.args[0]) from None

    def decode(self, token_ids: Iterable[int]) -> list[str]:
        """Return the tokens up to the first eos; a bos is skipped."""
        tokens = []
        for token_id in token_ids:
            if token_id == self.eos_id:
                break
            if token_id != self.bos_id:
                tokens.append(self.tokens[token_id])
        return tokens

    def save(self, path: Path) -> None:
        """Write the JSON file, whole or not at all."""
        content = {"format": FORMAT, "eos": EOS, "bos": BOS, "tokens": self.tokens}
        with atomic_write(path) as file:
            json.dump(content, file, ensure_ascii=True, indent=0)
            file.write("\n")

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        """Read a file that `save` wrote.

        Raises:
            VocabularyError: if the file is missing, is not such a file, or breaks the rules of `__init__`.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise VocabularyError(f"Cannot read the vocabulary {path}: {error}") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise VocabularyError(f"{path} is not a vocabulary of this version ({FORMAT}).")
        try:
            return cls(content["tokens"])
        except (KeyError, TypeError, AttributeError, VocabularyError) as error:
            raise VocabularyError(f"{path} is damaged: {error}") from error
