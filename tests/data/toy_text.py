"""A toy text of made-up words."""

import itertools

import numpy as np

WORDS = ["".join(letters) for letters in itertools.product("bdgkmt", "aeiou", ["n", "r", "sal"])]


def toy_documents(count: int = 60) -> list[str]:
    random = np.random.Generator(np.random.Philox(key=1))

    def sentence() -> str:
        return " ".join(random.choice(WORDS, random.integers(2, 12))) + "."

    return ["\n".join(sentence() for _ in range(random.integers(1, 6))) for _ in range(count)]
