from dataclasses import replace

from command import here
from parity import BERT
from toy_folders import toy_run, toy_tokenizer_file


def test_a_run_is_exported_and_imported(own_home, tmp_path):
    folder = toy_run(
        toy_tokenizer_file(tmp_path), replace(BERT, max_position_embeddings=128), "nsp"
    )
    out = str(tmp_path / "out")
    exported = here("export", folder.name, out)
    assert (exported.returncode, exported.stdout) == (0, f"{out}\n"), exported.stderr
    imported = here("import", out, "--name", "came-back")
    assert imported.returncode == 0, imported.stderr
    assert "nsp_not-shared_came-back-L3-E12" in imported.stdout
