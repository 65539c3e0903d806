import json

import numpy as np
import pytest

from albert_lab.data.shards import SPLITS, ShardWriter, open_shards, token_dtype


@pytest.mark.parametrize(
    ("vocab_size", "dtype"), [(60, np.uint16), (2**16, np.uint16), (2**16 + 1, np.uint32)]
)
def test_large_vocabularies_use_four_bytes_per_token(tmp_path, vocab_size, dtype):
    tokens = np.random.default_rng(0).integers(vocab_size, size=1000)
    counts = {}
    for split in SPLITS:
        writer = ShardWriter(tmp_path, split)
        one = np.array([1])  # sentence, document and source document
        writer.append(tokens.astype(token_dtype(vocab_size)), np.array([1000]), one, one)
        counts[split] = writer.counts
    (tmp_path / "meta.json").write_text(json.dumps({"vocab_size": vocab_size, **counts}))
    result = open_shards(tmp_path, "train")
    assert result.tokens.dtype == dtype
    assert result.tokens.tolist() == tokens.tolist()
    assert (tmp_path / "train.tokens").stat().st_size == 1000 * np.dtype(dtype).itemsize
