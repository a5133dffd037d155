"""`--mlflow URI`: a finished run, told to MLflow. It is on disk before; what fails here loses nothing."""

import os
import shlex
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.cli.text import YELLOW, print_line
from cofactor.cli.typed import masked
from cofactor.errors import ConfigError, Refused

if TYPE_CHECKING:
    from cofactor.cli.mlflow_record import Record

EXPERIMENT = "cofactor"
"""Under which experiment runs stand."""
SEAL = "cofactor.seal"
"""The tag that says which run folder a run is."""
_QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "MLFLOW_ENABLE_ASYNC_LOGGING": "false",
}
"""What MLflow must do here: call nobody but the server that was named, and print nothing."""
_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "30"}
"""How long to wait for a server that is away, unless the environment says otherwise: not for minutes."""
_PARAMS, _METRICS = 100, 1_000
"""How many MLflow takes at a time."""


class NotLogged(Refused):
    """MLflow could not be reached, or did not take what it was sent; the run folder is as it was."""


@dataclass(frozen=True, kw_only=True)
class Logged:
    """Where a run stands in MLflow."""

    uri: str
    """Without a password."""
    experiment: str
    id: str
    sent: bool
    """Whether it was sent now; if not, it had been before."""
    errors: bool
    """Whether errors were measured, and so, sent."""


@dataclass(frozen=True, kw_only=True)
class Tracking:
    """An MLflow server, a database or a folder, by its URI."""

    uri: str

    @property
    def shown(self) -> str:
        """The URI without a password."""
        return masked(self.uri)

    def check(self) -> None:
        """Refuse a URI that cannot be used, before anything is trained."""
        with _environment():
            try:
                self._client().get_experiment_by_name(EXPERIMENT)
            except ConfigError:
                raise
            except Exception as error:
                raise NotLogged(
                    f"--mlflow: {self.shown} cannot be used: {self._reason(error)}. Nothing was done. Name "
                    "another, such as http://localhost:5000 or file:mlruns, or leave it out: a saved run can "
                    "be logged later, by 'cofactor export RUN --mlflow URI'."
                ) from None

    def log(self, folder: Path, *, again: bool = False) -> Logged:
        """Tell MLflow of a run folder; of one that it has already only if told `again`."""
        from cofactor.cli.mlflow_record import record_of

        record = record_of(folder)
        with _environment():
            try:
                return self._sent(record, again=again)
            except Exception as error:
                command = shlex.join(["cofactor", "export", str(folder), "--mlflow", self.shown])
                raise NotLogged(
                    f"--mlflow: {self.shown} did not take the run: {self._reason(error)}. The run is "
                    f"complete, in {folder}. To log it again: {command}"
                ) from None

    def _sent(self, record: "Record", *, again: bool) -> Logged:
        client = self._client()
        experiment = _experiment(client)
        known = None if again else _known(client, experiment, record.seal)
        where = Logged(
            uri=self.shown, experiment=EXPERIMENT, id=known or "", sent=known is None, errors=record.measured
        )
        if known is not None:
            return where
        run = client.create_run(
            experiment, start_time=record.began, tags={SEAL: record.seal, **record.tags}, run_name=record.name
        )
        try:
            _fill(client, run.info.run_id, record)
        except BaseException:
            _give_up(client, run.info.run_id)
            raise
        return replace(where, id=run.info.run_id)

    def _client(self) -> Any:
        """Return MLflow's client, and say what is missing where a package is."""
        if not self.uri.strip():
            raise ConfigError("--mlflow: the URI is empty. Name a server, such as http://localhost:5000.")
        try:
            from mlflow.tracking import MlflowClient
        except ModuleNotFoundError:
            raise ConfigError(
                "--mlflow needs the package mlflow-skinny. Run: pip install 'mlflow-skinny>=3.1,<4' (or, in "
                "a clone, pip install '.[mlflow]')"
            ) from None
        try:
            return MlflowClient(tracking_uri=self.uri)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"--mlflow: {self.shown} needs more of MLflow than is installed ({error.name} is missing). "
                "Run: pip install 'mlflow>=3.1,<4'; or name a server (http://...) or a folder (file:...)"
            ) from None

    def _reason(self, error: Exception) -> str:
        """Return what went wrong in one line, without a password."""
        if "HTTPConnectionPool" in str(error) or "HTTPSConnectionPool" in str(error):
            return "no server answers there"
        lines = str(error).replace(self.uri, self.shown).strip().splitlines() or [type(error).__name__]
        return masked(lines[0].strip())[:300].rstrip(".")


def checked_tracking(uri: str | None) -> Tracking | None:
    """Return where runs are to be logged, if anywhere; refuse what cannot be used before any work."""
    if uri is None:
        return None
    tracking = Tracking(uri=uri)
    tracking.check()
    return tracking


def print_logged(logged: Logged) -> None:
    """Say where a run stands in MLflow, and what was told."""
    if not logged.sent:
        print_line(
            f"MLflow has this run already: {logged.id} at {logged.uri}. To log it once more, add --force."
        )
        return
    print_line(f"Logged to MLflow at {logged.uri}, experiment {logged.experiment}: {logged.id}.")
    if logged.errors:
        print_line(
            "Errors were sent, too. They are measured with private ratings, and no guarantee covers them: "
            "whoever can read that place can read them.",
            YELLOW,
        )


def _experiment(client: Any) -> str:
    found = client.get_experiment_by_name(EXPERIMENT)
    return str(client.create_experiment(EXPERIMENT) if found is None else found.experiment_id)


def _known(client: Any, experiment: str, seal: str) -> str | None:
    """Return the run that was logged for the same folder before, if it was finished."""
    wanted = f"tags.`{SEAL}` = '{seal}' and attributes.status = 'FINISHED'"
    found = client.search_runs([experiment], filter_string=wanted, max_results=1)
    return str(found[0].info.run_id) if found else None


def _fill(client: Any, run: str, record: "Record") -> None:
    from mlflow.entities import Metric, Param

    now = int(time.time() * 1000)
    params = [Param(name, value) for name, value in record.params.items()]
    for start in range(0, len(params), _PARAMS):
        client.log_batch(run, params=params[start : start + _PARAMS])
    metrics = [Metric(name, value, now, 0) for name, value in record.metrics.items()]
    metrics += [Metric(name, value, now, step) for step, name, value in record.by_round]
    for start in range(0, len(metrics), _METRICS):
        client.log_batch(run, metrics=metrics[start : start + _METRICS])
    with tempfile.TemporaryDirectory() as folder:
        for name, text in record.files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        client.log_artifacts(run, folder)
    client.set_terminated(run)


def _give_up(client: Any, run: str) -> None:
    """Mark a run of which only a part arrived, if MLflow can still be told."""
    try:
        client.set_terminated(run, status="FAILED")
    except Exception:
        return


@contextmanager
def _environment() -> Iterator[None]:
    """Let MLflow read how to behave, and leave the environment as it was."""
    wanted = {name: value for name, value in _PATIENCE.items() if name not in os.environ} | _QUIET
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
