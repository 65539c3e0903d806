import json
from pathlib import Path

import numpy as np
import pytest
from toy import toy_config

from albert_lab.config.compose import vocabulary_size
from albert_lab.data.prepare import prepare
from albert_lab.data.shards import open_shards
from albert_lab.data.tokenizer import SentencePieceTokenizer
from albert_lab.data.tokenizer import load as load_model
from albert_lab.data.vocabulary import load_tokenizer, tokenizer_fingerprint
from albert_lab.errors import ConfigError

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is an extra")

TOKENS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "cat",
    "##s",
    "red",
    ",",
    "cafe",
    ".",
    "b",
    "##a",
    "##ido",
]
TOKENS += [f"[unused{number}]" for number in range(20)]
TOKENS += ["[", "]", "mask"]
IDS = {token: number for number, token in enumerate(TOKENS)}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A WordPiece tokenizer.json that truncates and pads, like published ones."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(IDS, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    tokenizer.add_special_tokens(TOKENS[:5])
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=20)
    path = tmp_path_factory.mktemp("json") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


def test_it_is_recognized_by_its_suffix_and_adds_and_truncates_nothing(file):
    tokenizer = load_model(file)
    assert not isinstance(tokenizer, SentencePieceTokenizer)
    assert tokenizer.encode(["Red cats, red CAFÉ", ""]) == [[7, 5, 6, 8, 7, 9], []]
    special = [getattr(tokenizer, f"{name}_id") for name in ("pad", "unk", "cls", "sep", "mask")]
    assert special == [0, 1, 2, 3, 4]
    assert tokenizer.vocab_size == len(TOKENS)
    assert tokenizer.tokens() == TOKENS


def test_a_vocabulary_with_gaps_has_room_for_its_largest_id(tmp_path):
    path = str(tmp_path / "tokenizer.json")
    model = tokenizers.models.WordLevel(IDS | {"far": 90}, unk_token="[UNK]")
    tokenizers.Tokenizer(model).save(path)
    tokenizer = load_model(Path(path))
    assert tokenizer.vocab_size == vocabulary_size(path) == len(tokenizer.tokens()) == 91


def test_offsets_refer_to_the_raw_text(file):
    text = "Red cats, café"
    ids, offsets = load_model(file).encode_with_offsets(text)
    assert [text[first:end] for first, end in offsets] == ["Red", "cat", "s", ",", "café"]
    assert ids == [7, 5, 6, 8, 9]


def test_the_name_of_a_special_token_in_a_text_is_text(file):
    tokenizer = load_model(file)
    expected = [TOKENS.index(token) for token in ("[", "mask", "]", "cat")]
    assert tokenizer.encode(["[MASK] cat"]) == [expected]
    assert tokenizer.encode_with_offsets("[MASK] cat")[0] == expected


def test_wordpieces_with_the_prefix_continue_a_word_and_other_pieces_by_their_letters(
    file, tmp_path
):
    starts = load_model(file).word_starts
    assert starts.tolist() == [not token.startswith("##") for token in TOKENS]
    pieces = [(token, 0.0) for token in (*TOKENS[:5], "▁red", "##", "s")]
    tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, 1)).save(
        str(tmp_path / "tokenizer.json")
    )
    assert load_model(tmp_path / "tokenizer.json").word_starts.tolist()[5:] == [True, False, False]


def test_a_file_without_a_tokenizer_or_a_special_token_is_refused(file, tmp_path):
    (tmp_path / "bad.json").write_text("{}")
    content = json.loads(file.read_text())
    del content["model"]["vocab"]["[MASK]"], content["added_tokens"]
    (tmp_path / "lacking.json").write_text(json.dumps(content))
    for name in ("bad.json", "lacking.json"):
        with pytest.raises(ConfigError, match=name):
            load_model(tmp_path / name)


def test_text_is_prepared_as_with_sentencepiece(file, corpus, own_home):
    more = [
        "tokenizer=model-file",
        f"tokenizer.model_file={file}",
        f"tokenizer.vocab_size={len(TOKENS)}",
    ]
    config = toy_config(corpus, *more)
    assert tokenizer_fingerprint(config) == load_model(file).fingerprint
    shards = open_shards(prepare(config, lambda _line: None), "dev", load_tokenizer(config))
    assert set(np.unique(shards.tokens)) <= set(range(len(TOKENS)))
    assert len(shards.tokens) > 1000
