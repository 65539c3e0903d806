import pytest
from toy_folders import toy_tokenizer_file


@pytest.fixture(scope="session")
def spiece(tmp_path_factory):
    """A tokenizer file of the toy text."""
    return toy_tokenizer_file(tmp_path_factory.mktemp("tokenizer"))
