import json
import re
import unicodedata

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from parity import transformers

from albert_lab.config.compose import load
from albert_lab.data.tokenizer import Tokenizer as JsonTokenizer
from albert_lab.data.tokenizer import cleaning_of
from albert_lab.data.tokenizer import load as load_model
from albert_lab.data.vocabulary import train
from albert_lab.errors import ConfigError, MissingDataError
from albert_lab.interop.export import write_tokenizer
from albert_lab.interop.loading import find_tokenizer_file, read_tokenizer_settings

TEXT = (
    'Fellow-Citizens of the Senate ("House"), 92,000 people: naïve cafés -- on May 2, 2006, for £5.'
)
SCRIPTS = (
    "abcXYZé 0129(),.-\"'£\tﬁ½ ΣςİıẞŞǅ\u0301\u0308\u0323\u0327",
    "한국어각힣\u1112\u1161\u11ab\u3131 ",
    "हिन्दीक़फ़\u093c\u094d\u0902 ",
    "คำว่าน้ำเกี่\u0e33\u0e4d ",
    "أحمدإلىآمُدَرِّسلا\u0654\u0640ﷺ ",
    "日本語がぎパパカ゛ｶﾞ\u3099\u309a。 ",
    "😀❤\ufe0f👩\u200d👧🇩🇪👍🏽#\ufe0f\u20e3 \u200b",
)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Tokenizers of one vocabulary, for each cleaning: here, and as transformers reads them."""
    model = tmp_path_factory.mktemp("tokenizer") / "spiece.model"
    base = load(["scale=smoke"])
    train(
        [TEXT, "red cats", *SCRIPTS] * 20,
        base.tokenizer.model_copy(update={"vocab_size": 148}),
        model,
    )
    given = ["scale=smoke", "tokenizer=model-file", f"tokenizer.model_file={model}"]
    pairs = []
    for changed in (
        [],
        ["corpus.strip_accents=false"],
        ["corpus.lower_case=false"],
        ["corpus=files", "corpus.path=x", "corpus.language=tr"],
    ):
        folder = tmp_path_factory.mktemp("written")
        config = load([*given, *changed])
        write_tokenizer(config, folder)
        ours = load_model(model, cleaning_of(config.corpus))
        pairs.append((ours, transformers.AutoTokenizer.from_pretrained(folder)))
    return pairs


@settings(max_examples=300)
@example("\u200c\u064b\u0628 a\u200d\u0329")
@given(st.text(max_size=40) | st.one_of(*(st.text(script, max_size=40) for script in SCRIPTS)))
def test_every_text_has_the_same_ids_here_and_in_transformers(written, text):
    # A run of one character, such as 00000, can be cut in several ways that are equally likely.
    assume(not re.search(r"(.)\1\1", unicodedata.normalize("NFKD", text)))
    for ours, theirs in written:
        assert ours.encode([text])[0] == theirs(text, add_special_tokens=False)["input_ids"]


WORDS = ("<unk>", "<pad>", "[MASK]", "[CLS]", "[SEP]", "<", "unk>", " ", "\u2581", "a", "İ")


@settings(max_examples=100)
@given(st.lists(st.sampled_from(WORDS), max_size=8).map("".join))
def test_names_of_special_tokens_in_a_text_are_text_here_and_where_transformers_splits_them(
    written, text
):
    for ours, theirs in written:
        ids = ours.encode([text])[0]
        assert ids == theirs(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        exported = JsonTokenizer(theirs.backend_tokenizer.to_str().encode(), "exported")
        assert ids == exported.encode([text])[0]
        assert not {ours.pad_id, ours.cls_id, ours.sep_id, ours.mask_id} & {*ids}


def test_transformers_reads_the_written_tokenizer_with_its_special_tokens_and_pairs(written):
    ours, theirs = written[0]
    first, second = ours.encode([TEXT, "red cats"])
    result = theirs(TEXT, "red cats")
    assert result["input_ids"] == [ours.cls_id, *first, ours.sep_id, *second, ours.sep_id]
    assert result["token_type_ids"] == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    for name in ("pad", "unk", "cls", "sep", "mask"):
        assert getattr(theirs, f"{name}_token_id") == getattr(ours, f"{name}_id")
    assert theirs.model_max_length == 32


def test_the_released_model_is_written_with_its_ids(shared_data, tmp_path):
    file = shared_data / "sentencepiece" / "30k-clean.model"
    config = load(["scale=smoke", "tokenizer=model-file", f"tokenizer.model_file={file}"])
    write_tokenizer(config, tmp_path)
    ours = load_model(file, cleaning_of(config.corpus)).encode([TEXT])[0]
    for cls in (transformers.AutoTokenizer, transformers.AlbertTokenizer):
        assert cls.from_pretrained(tmp_path)(TEXT, add_special_tokens=False)["input_ids"] == ours


def test_the_accents_of_an_albert_folder_are_stripped_with_either_case_as_transformers_does(
    tmp_path,
):
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert not read_tokenizer_settings(tmp_path)["corpus.strip_accents"]
    (tmp_path / "spiece.model").touch()
    assert read_tokenizer_settings(tmp_path)["corpus.strip_accents"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({}, (True, True, None)),
        ({"do_lower_case": False}, (False, False, None)),
        ({"do_lower_case": False, "keep_accents": False}, (False, True, None)),
        ({"keep_accents": True, "model_max_length": 128}, (True, False, 128)),
        ({"strip_accents": False, "model_max_length": 10**30}, (True, False, None)),
    ],
)
def test_settings_equal_those_of_transformers(tmp_path, content, expected):
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(content))
    settings = read_tokenizer_settings(tmp_path)
    length = settings["max_sequence_length"] if settings["max_sequence_length"] < 10**9 else None
    assert (settings["corpus.lower_case"], settings["corpus.strip_accents"], length) == expected


def test_a_folder_without_a_tokenizer_or_with_broken_settings_is_refused(tmp_path):
    (tmp_path / "vocab.txt").touch()
    with pytest.raises(MissingDataError, match="vocab.txt"):
        find_tokenizer_file(tmp_path)
    for content, said in (
        ("[]", "tokenizer_config"),
        ('{"model_max_length": 4}', "model_max_length=4"),
    ):
        (tmp_path / "tokenizer_config.json").write_text(content)
        with pytest.raises(ConfigError, match=said):
            read_tokenizer_settings(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "tokenizer_config.json").mkdir()
    with pytest.raises(ConfigError, match="is no ordinary file"):
        read_tokenizer_settings(tmp_path)
