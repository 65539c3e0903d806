import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_lab.data.corpus import Split
from albert_lab.data.shards import OFFSET, SPLITS, ShardWriter, open_shards, token_dtype

# Batches of documents, as the lengths of their sentences in tokens; no sentence and no document is
# empty.
BATCHES = st.lists(
    st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4), max_size=4), max_size=4
)


def write(folder, batches, vocab_size=60):
    """Shards of both splits in the folder, and the tokens of every document written."""
    tokens = np.random.Generator(np.random.Philox(key=1))
    written: dict[Split, list] = {split: [] for split in SPLITS}
    counts = {}
    for split in SPLITS:
        writer = ShardWriter(folder, split)
        for batch in batches:
            documents = [
                [tokens.integers(vocab_size, size=length) for length in lengths]
                for lengths in batch
            ]
            sentences = [sentence for document in documents for sentence in document]
            writer.append(
                np.concatenate([[], *sentences]).astype(token_dtype(vocab_size)),
                np.array([len(sentence) for sentence in sentences], OFFSET),
                np.array([len(document) for document in documents], OFFSET),
                np.array([len(documents)] if documents else [], OFFSET),
            )
            written[split] += documents
        counts[split] = writer.counts
    (folder / "meta.json").write_text(json.dumps({"vocab_size": vocab_size, **counts}))
    return written


@given(batches=BATCHES)
def test_tokens_written_in_batches_are_read_back_completely(tmp_path_factory, batches):
    batches = [*batches, [[1, 2]]]  # an empty file cannot be mapped, and no prepared split is empty
    folder = tmp_path_factory.mktemp("shards")
    written = write(folder, batches)
    for split, documents in written.items():
        result = open_shards(folder, split)
        assert result.num_documents == len(documents)
        sizes = [len(batch) for batch in batches if batch]
        assert np.diff(result.source_offsets).tolist() == sizes
        assert (
            result.source_of(np.arange(len(documents))).tolist()
            == np.repeat(np.arange(len(sizes)), sizes).tolist()
        )
        assert len(result.sentence_offsets) - 1 == sum(map(len, documents))
        assert len(result.tokens) == sum(
            len(sentence) for document in documents for sentence in document
        )
        sentences = np.split(result.tokens, result.sentence_offsets[1:-1])
        for document, first, end in zip(
            documents, result.document_offsets, result.document_offsets[1:], strict=False
        ):
            assert [sentence.tolist() for sentence in sentences[first:end]] == [
                ids.tolist() for ids in document
            ]


@pytest.mark.parametrize(
    ("vocab_size", "dtype"), [(60, np.uint16), (2**16, np.uint16), (2**16 + 1, np.uint32)]
)
def test_large_vocabularies_use_four_bytes_per_token(tmp_path, vocab_size, dtype):
    written = write(tmp_path, [[[1000]]], vocab_size)
    result = open_shards(tmp_path, "train")
    assert result.tokens.dtype == dtype
    assert result.tokens.tolist() == written["train"][0][0].tolist()
    assert (tmp_path / "train.tokens").stat().st_size == 1000 * np.dtype(dtype).itemsize
