from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from toy import toy_config
from toy_shards import make_prose, make_shards, sources_of

from albert_lab.data.pairs import Pairs
from albert_lab.errors import ConfigError
from albert_lab.measures.catalog import SOP, SOP_ACROSS_DOCUMENTS
from albert_lab.measures.sop_across_documents import across_documents


def both(shards, tmp_path) -> tuple[Pairs, Pairs]:
    config = toy_config(tmp_path)
    return SOP.pairs(shards, config, 10_000), SOP_ACROSS_DOCUMENTS.pairs(shards, config, 10_000)


def first_and_second(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """Start and length of the segment that is first in the text, and of the one that is second [2,
    pairs].
    """
    a = np.stack([pairs.a_start, pairs.a_length])
    b = np.stack([pairs.b_start, pairs.b_length])
    return np.where(pairs.label, b, a), np.where(pairs.label, a, b)


def test_only_the_second_segments_change_places_pair_by_pair_with_labels_and_lengths(tmp_path):
    same, across = both(make_prose(80, sentences=20, tokens=8), tmp_path)
    assert np.array_equal(same.label, across.label)
    for part in (slice(None), slice(40)):
        assert abs(np.mean(across.label[part]) - 0.5) <= 1 / len(across.label[part])
    (first, (before, length)) = first_and_second(same)
    (first_across, (after, length_across)) = first_and_second(across)
    assert np.array_equal(first, first_across)
    assert set(after) <= set(before)
    assert len(set(after)) > 0.95 * len(set(before))
    assert np.all(length_across <= length)
    assert np.mean(length - length_across) < 0.2


SENTENCES = st.lists(st.integers(1, 20), min_size=1, max_size=12)
SOURCES = st.lists(st.lists(SENTENCES, min_size=1, max_size=4), min_size=2, max_size=8)


@given(SOURCES)
def test_no_pair_has_both_segments_of_one_source_document(sources):
    documents = [document for source in sources for document in source]
    shards = make_shards(documents, sources=[len(source) for source in sources])
    try:
        pairs = SOP.pairs(shards, toy_config(Path()), 1000)
        across = across_documents(pairs, shards, 0)
    except ConfigError:  # too small for pairs of both orders, or pairs of one source only
        reject()
    first, second = sources_of(shards, across)
    assert np.all(first != second)
    assert np.all(across.a_length + across.b_length <= pairs.a_length + pairs.b_length)
    assert np.all(np.minimum(across.a_length, across.b_length) > 0)


def test_pairs_of_one_source_document_only_are_refused(tmp_path):
    shards = make_shards([[8] * 40, [8] * 40], sources=[2])
    with pytest.raises(ConfigError, match="all held-out pairs are of one"):
        SOP_ACROSS_DOCUMENTS.pairs(shards, toy_config(tmp_path), 100)
