"""Import of an ALBERT or BERT of transformers as a run."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from albert_lab import __version__
from albert_lab.data.build import find_or_build
from albert_lab.interop import layout, tokenizer_files
from albert_lab.interop.loading import open_transformers
from albert_lab.messages import Say
from albert_lab.runs import run as runs
from albert_lab.training import checkpoint
from albert_lab.training.optimizer import build_optimizer


def import_folder(folder: Path, overrides: Sequence[str], name: str | None, say: Say) -> Path:
    """The run folder of a folder of transformers; makes it first if it does not exist.

    It contains the weights as a checkpoint of step 0 without optimizer state, the tokenizer, and import.json.

    Raises:
        ConfigError, MissingDataError: see loading.open_transformers and tokenizer_files.find_or_convert.
    """
    layout.package("import")
    with TemporaryDirectory() as scratch:
        opened = open_transformers(folder, tokenizer_files.find_or_convert(folder, Path(scratch)), overrides, name)
        file = opened.run.folder / opened.tokenizer_file.name
        settings = opened.run.config.tokenizer.model_copy(update={"model_file": str(file)})
        run = replace(opened.run, config=opened.run.config.model_copy(update={"tokenizer": settings}))

        def build(partial: Path) -> None:
            shutil.copyfile(opened.tokenizer_file, partial / file.name)
            runs.write_run_file(run, partial)
            optimizer = build_optimizer(opened.model, run.config.optimizer, run.config.learning_rate)
            checkpoint.save(partial / "checkpoint", opened.model, optimizer, {"run_name": run.name, "step": 0})
            record = {
                "source": str(folder.resolve()),
                "missing_parts": list(opened.missing),
                "albert_lab": __version__,
                "imported": datetime.now(UTC).date().isoformat(),
            }
            (partial / runs.IMPORT).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")

        find_or_build(run.folder, build, f"the import of {folder}", say)
    if opened.missing:
        say(f"the folder has no {' and no '.join(opened.missing)}")
    say("the folder has no optimizer state: continued pre-training starts with fresh moments")
    return run.folder
