import json

import numpy as np
import pytest

from albert_lab.data.shards import ShardWriter, open_shards, token_dtype


@pytest.mark.parametrize(
    ("vocab_size", "dtype"), [(60, np.uint16), (2**16, np.uint16), (2**16 + 1, np.uint32)]
)
def test_large_vocabularies_use_four_bytes_per_token(tmp_path, vocab_size, dtype):
    tokens = np.arange(vocab_size)
    writer = ShardWriter(tmp_path, "train")
    one = np.array([1])  # sentence, document and source document
    writer.append(tokens.astype(token_dtype(vocab_size)), np.array([vocab_size]), one, one)
    meta = {"vocab_size": vocab_size, "train": writer.counts, "dev": {}}
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    result = open_shards(tmp_path, "train")
    assert result.tokens.dtype == dtype
    np.testing.assert_array_equal(result.tokens, tokens)
