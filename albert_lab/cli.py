"""The command line: parse, call, print. Heavy imports stay inside the commands, so that --help is quick."""

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from albert_lab import __version__, paths

if TYPE_CHECKING:
    from albert_lab.lab.experiment import Experiment
    from albert_lab.lab.sweep import Options

EXIT_CODES = """Exit codes: 0 done, 1 a run failed, 2 wrong usage or configuration, 3 some runs of a sweep failed,
4 data or a package is missing, 75 stopped (SIGTERM) and resumable, 130 stopped by Ctrl-C and resumable."""
STUDIES, MODELS, KEEPING = "Studies", "Models and data", "Keeping house"

app = typer.Typer(
    name="albert-lab",
    help="Ablation studies of encoder pre-training: the experiments of ALBERT (arXiv 1909.11942) at any scale.",
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
config_app = typer.Typer(help="Show the configuration and its options.", no_args_is_help=True)
data_app = typer.Typer(help="Prepare text ahead of the runs.", no_args_is_help=True)
tokenizer_app = typer.Typer(help="Train a tokenizer by itself.", no_args_is_help=True)
app.add_typer(data_app, name="data", rich_help_panel=MODELS)
app.add_typer(tokenizer_app, name="tokenizer", rich_help_panel=MODELS)
app.add_typer(config_app, name="config", rich_help_panel=MODELS)


def _complete_override(incomplete: str) -> list[str]:
    from albert_lab.config import complete

    return complete(incomplete)


Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...",
        help="Configuration in Hydra's grammar: scale=smoke, seed=0,1,2, optimizer.learning_rate=0.01.",
        autocompletion=_complete_override,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Runs at a time; the cores are shared out among them.")]
FailFast = Annotated[bool, typer.Option("--fail-fast/--keep-going", help="After a failed run, start no other.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Make finished runs again, from the start.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Make runs again that failed before.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the runs and what they would cost; write nothing.")]
ListFolders = Annotated[bool, typer.Option("--list", help="Print the run folders with their states; write nothing.")]


def _print_version(asked: bool) -> None:
    if asked:
        print(f"albert-lab {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _study(
    experiment: "Experiment",
    overrides: Sequence[str],
    options: "Options",
    dry_run: bool,
    list_folders: bool,
    as_json: bool,
) -> None:
    from albert_lab.analysis import report
    from albert_lab.lab import estimate, sweep

    planned = sweep.plan(experiment, overrides)
    if dry_run:
        costs = estimate.costs(planned)
        print(json.dumps(costs.as_dict(), indent=2) if as_json else costs.as_text())
        return
    if list_folders:
        rows = [{"folder": str(item.run.folder), "state": item.state, **item.point.row} for item in planned]
        print(
            json.dumps(rows, indent=2) if as_json else "\n".join(f"{row['state']:<8} {row['folder']}" for row in rows)
        )
        return
    outcome = sweep.execute(planned, options)
    command = shlex.join(["albert-lab", *(word for word in sys.argv[1:] if word not in ("--fresh", "--retry-failed"))])
    points = sweep.points_table(planned, outcome, command)
    if any(points["state"] == "done"):
        folder = paths.reports() / sweep.report_place(planned) / experiment.name
        file = report.write(folder, experiment, points, *sweep.tables(planned))
        print(report.as_json(folder) if as_json else report.scores(folder))
        _note(f"report: {file}")
    else:
        _note("no run is finished: no report")
    raise typer.Exit(outcome.code)


def _note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _examples(*lines: str) -> str:
    return "Examples:\n\n" + "\n\n".join(f"[cyan]{line.replace('[', chr(92) + '[')}[/cyan]" for line in lines)


@app.command(
    rich_help_panel=STUDIES,
    epilog=_examples(
        "albert-lab sweep embedding_size=64,128,256,768",
        "albert-lab sweep sharing=all-shared,not-shared seed=0,1,2 --jobs 2",
    ),
)
def sweep(
    overrides: Overrides = None,
    jobs: Jobs = 1,
    fail_fast: FailFast = False,
    fresh: Fresh = False,
    retry_failed: RetryFailed = False,
    dry_run: DryRun = False,
    list_folders: ListFolders = False,
    as_json: Json = False,
) -> None:
    """Run every combination of the given values and write their table."""
    from albert_lab.lab.experiment import from_overrides
    from albert_lab.lab.sweep import Options

    experiment, rest = from_overrides(overrides or [])
    _study(experiment, rest, Options(jobs, fail_fast, fresh, retry_failed), dry_run, list_folders, as_json)


@app.command(
    rich_help_panel=STUDIES,
    epilog=_examples("albert-lab run my-study.yaml", "albert-lab run my-study.yaml scale=smoke --dry-run"),
)
def run(
    file: Annotated[Path, typer.Argument(help="An experiment file of your own, like those in experiments/.")],
    overrides: Overrides = None,
    jobs: Jobs = 1,
    fail_fast: FailFast = False,
    fresh: Fresh = False,
    retry_failed: RetryFailed = False,
    dry_run: DryRun = False,
    list_folders: ListFolders = False,
    as_json: Json = False,
) -> None:
    """Run an experiment file of your own."""
    from albert_lab.lab.experiment import read
    from albert_lab.lab.sweep import Options

    options = Options(jobs, fail_fast, fresh, retry_failed)
    _study(read(file), overrides or [], options, dry_run, list_folders, as_json)


def _experiment_command(name: str) -> Callable[..., None]:
    def command(
        overrides: Overrides = None,
        jobs: Jobs = 1,
        fail_fast: FailFast = False,
        fresh: Fresh = False,
        retry_failed: RetryFailed = False,
        dry_run: DryRun = False,
        list_folders: ListFolders = False,
        as_json: Json = False,
    ) -> None:
        from albert_lab.lab.experiment import named
        from albert_lab.lab.sweep import Options

        options = Options(jobs, fail_fast, fresh, retry_failed)
        _study(named(name), overrides or [], options, dry_run, list_folders, as_json)

    return command


def _title(file: Path) -> str:
    """The title line of an experiment file, without the cost of parsing YAML before every --help."""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("title:"):
            return line.removeprefix("title:").strip().strip("\"'")
    return file.stem


for _file in sorted(paths.EXPERIMENTS.glob("*.yaml")):
    app.command(
        _file.stem,
        help=f"{_title(_file)}.",
        rich_help_panel=STUDIES,
        epilog=_examples(f"albert-lab {_file.stem}", f"albert-lab {_file.stem} scale=smoke seed=0,1,2 --jobs 2"),
    )(_experiment_command(_file.stem))


@app.command(
    rich_help_panel=MODELS,
    epilog=_examples("albert-lab params model=xxlarge scale=paper", "albert-lab params --paper"),
)
def params(
    overrides: Overrides = None,
    paper: Annotated[bool, typer.Option("--paper", help="Every count that the paper prints, beside ours.")] = False,
    as_json: Json = False,
) -> None:
    """Parameters, FLOPs and memory of a configuration, without building it."""
    from albert_lab.lab import estimate

    found = estimate.paper_counts() if paper else estimate.sizes(overrides or [])
    print(json.dumps(found.as_dict(), indent=2) if as_json else found.as_text())


@app.command(
    rich_help_panel=STUDIES,
    epilog=_examples("albert-lab report reports/laptop-sotu/sop-vs-nsp", "albert-lab report reports/*/*"),
)
def report(folders: Annotated[list[Path], typer.Argument(help="Folders with the CSV files of a report.")]) -> None:
    """Rebuild reports from the CSV files beside them."""
    from albert_lab.analysis.report import rebuild

    for folder in folders:
        print(rebuild(folder))


@app.command(rich_help_panel=KEEPING, epilog=_examples("albert-lab status", "albert-lab status --json"))
def status(as_json: Json = False) -> None:
    """Every run that was begun here, and how far it is."""
    from albert_lab.lab.status import rows, text

    found = rows(paths.runs())
    print(json.dumps(found, indent=2) if as_json else text(found))


@app.command(rich_help_panel=KEEPING, epilog=_examples("albert-lab clean", "albert-lab clean --cache --yes"))
def clean(
    cache: Annotated[
        bool, typer.Option("--cache", help="Also prepared text and tokenizers (made again when needed).")
    ] = False,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Also the weights of finished runs (scores and curves stay).")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Say what could be freed, then ask, then free it."""
    from albert_lab.errors import ConfigError
    from albert_lab.lab import cleaning

    found = cleaning.garbage(cache=cache, checkpoints=checkpoints)
    for path, size in found.items():
        print(f"{size / 2**20:>10.1f} MiB  {path}")
    total = sum(found.values()) / 2**20
    if not found:
        _note("nothing to free")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise ConfigError(f"{total:.1f} MiB could be freed: give --yes where there is no terminal to ask on")
        typer.confirm(f"Free {total:.1f} MiB?", abort=True, err=True)
    cleaning.free(found)
    _note(f"freed {total:.1f} MiB")


@config_app.command(
    "show", epilog=_examples("albert-lab config show", "albert-lab config show scale=paper model=large")
)
def config_show(overrides: Overrides = None, as_json: Json = False) -> None:
    """The whole configuration of one run, resolved."""
    from omegaconf import OmegaConf

    from albert_lab.config import load

    content = load(overrides or []).model_dump(mode="json")
    print(json.dumps(content, indent=2) if as_json else OmegaConf.to_yaml(OmegaConf.create(content)), end="")


@config_app.command("list", epilog=_examples("albert-lab config list", "albert-lab config list --json"))
def config_list(as_json: Json = False) -> None:
    """Every group of options, as `group=option`."""
    from albert_lab.config import groups

    found = groups()
    print(
        json.dumps(found, indent=2) if as_json else "\n".join(f"{group}: {' '.join(found[group])}" for group in found)
    )


@data_app.command(
    "prepare",
    epilog=_examples("albert-lab data prepare", "albert-lab data prepare corpus=files corpus.path=my-texts"),
)
def data_prepare(overrides: Overrides = None, as_json: Json = False) -> None:
    """Read, clean and tokenize a corpus into shards on disk; nothing is done twice."""
    from albert_lab.config import load
    from albert_lab.data.shards import prepare, read_meta

    folder = prepare(load(overrides or []), _note)
    print(json.dumps({"folder": str(folder), **read_meta(folder)}, indent=2) if as_json else folder)


@tokenizer_app.command(
    "train",
    epilog=_examples(
        "albert-lab tokenizer train tokenizer.vocab_size=8000",
        "albert-lab tokenizer train corpus=files corpus.path=my-texts tokenizer.vocab_size=30000",
    ),
)
def tokenizer_train(overrides: Overrides = None) -> None:
    """Train the SentencePiece model of a configuration, and print where it is."""
    from albert_lab.config import load
    from albert_lab.data.tokenizer import find_or_train

    print(find_or_train(load(overrides or []), _note))


class _SignalledError(BaseException):
    """A signal arrived while this process itself was at work."""


def _raise_signalled(number: int, _frame: Any) -> NoReturn:
    raise _SignalledError(number)


def main() -> None:
    """Run the command line; every error that a user can cause ends in one line on stderr and its exit code."""
    if {"-m", "--multirun"} & set(sys.argv[1:3]):
        _fail("-m is Hydra's; here a sweep is a command: albert-lab sweep embedding_size=64,128", 2)
    signal.signal(signal.SIGINT, _raise_signalled)
    signal.signal(signal.SIGTERM, _raise_signalled)
    from albert_lab.errors import ConfigError, MissingDataError

    try:
        app()
    except ConfigError as error:
        _fail(error, 2)
    except MissingDataError as error:
        _fail(error, 4)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (RuntimeError, OSError) as error:
        _fail(error, 1)
    except _SignalledError as signalled:
        interrupted = signalled.args[0] == signal.SIGINT
        _fail("stopped; the same command goes on from there", 130 if interrupted else 75)


def _fail(error: object, code: int) -> NoReturn:
    if os.environ.get("ALBERT_LAB_TRACEBACK") and isinstance(error, BaseException):
        raise error
    _note(f"albert-lab: {error}")
    sys.exit(code)


if __name__ == "__main__":
    main()
