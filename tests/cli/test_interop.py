import json
from dataclasses import replace
from pathlib import Path

from command import here
from parity import BERT
from toy import write_corpus
from toy_folders import toy_run, toy_tokenizer_file

from albert_lab.config.compose import quoted


def test_a_run_is_exported_imported_and_scored(own_home, tmp_path):
    folder = toy_run(
        toy_tokenizer_file(tmp_path), replace(BERT, max_position_embeddings=128), "nsp"
    )
    out = str(tmp_path / "out")
    exported = here("export", folder.name, out)
    assert (exported.returncode, exported.stdout) == (0, f"{out}\n"), exported.stderr
    imported = here("import", out, "--name", "came-back")
    assert imported.returncode == 0, imported.stderr
    assert "nsp_not-shared_came-back-L3-E12" in imported.stdout
    text = write_corpus(tmp_path / "text, 'quoted'")
    options = [
        "scale=smoke",
        "corpus.sentences=line",
        "corpus.dev_share=0.25",
        "machine.device=cpu",
        "--json",
    ]
    options += ["evaluation.num_pairs=32", "evaluation.num_probe_pairs=32"]
    options += ["corpus=files", f"corpus.path={quoted(str(text))}"]
    scored = here("evaluate", Path(imported.stdout.strip()).name, *options)
    assert scored.returncode == 0, scored.stderr
    assert {"head", "linear probe"} <= {
        score["by"] for score in json.loads(scored.stdout)["scores"].values()
    }
