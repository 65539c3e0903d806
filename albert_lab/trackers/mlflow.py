"""MLflow, at $MLFLOW_TRACKING_URI or its default. $MLFLOW_EXPERIMENT_NAME names the experiment."""

import json
import os
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from albert_lab.trackers.tracker import PROJECT


class Mlflow:
    """A run of MLflow."""

    def __init__(self, client: Any, run: Any):
        self._client = client
        self._id = run.info.run_id
        histories = (client.get_metric_history(self._id, name) for name in run.data.metrics)
        self.last_step = max((metric.step for history in histories for metric in history), default=-1)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        metric, now = import_module("mlflow.entities").Metric, round(1000 * time.time())
        self._client.log_batch(self._id, metrics=[metric(name, value, now, step) for name, value in values.items()])

    def close(self) -> None:
        self._client.set_terminated(self._id)


def open_run(run: str, folder: Path, config: Mapping[str, Any]) -> Mlflow:
    client: Any = import_module("mlflow.tracking").MlflowClient()
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or PROJECT
    experiment = client.get_experiment_by_name(name)
    place = experiment.experiment_id if experiment else client.create_experiment(name)
    known = client.search_runs([place], filter_string=f"attributes.run_name = '{run}'", max_results=1)
    if known:
        client.update_run(known[0].info.run_id, status="RUNNING")
        return Mlflow(client, known[0])
    created = client.create_run(place, run_name=run)
    for key, value in config.items():
        client.log_param(created.info.run_id, key, value if isinstance(value, str) else json.dumps(value))
    return Mlflow(client, created)
