"""From Python what ``fedrain federate`` does: an experiment over one of Flower's networks."""

import logging
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrain.errors import InputError, MissingExtraError, unknown
from fedrain.experiment.configuration import KINDS, Configuration, Named
from fedrain.experiment.folder import Say, accept, checkpoints_of
from fedrain.experiment.run import Run
from fedrain.experiment.training import chosen
from fedrain.experiment.watching import watched
from fedrain.io import alone_in
from fedrain.reading import read_note

if TYPE_CHECKING:
    from fedrain.flower.server import Federation

ENGINES = {
    "local": "in one process (default)",
    "simulation": "on Flower's simulation engine (Ray)",
    "deployment": "a process for every node, over TLS on this machine",
}
NO_START = (
    "a federation starts from new agents, not from those of another run: that is for fedrain train"
)

#: What plays a federation to its end.
Engine = Callable[["Federation"], None]


def prepare(simulation: bool = False) -> None:
    """Make sure that Flower is there, before it is imported, and quiet."""
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # else gRPC logs every new process
    import_module("fedrain.flower")  # has settings that Flower reads as it is imported
    needed = {"flwr": "flower", **({"ray": "simulation"} if simulation else {})}
    for package, extra in needed.items():
        try:
            import_module(package)
        except ModuleNotFoundError:
            raise MissingExtraError(package, extra) from None
    # Flower logs every step; our own messages say what matters.
    logging.getLogger("flwr").setLevel(logging.ERROR)


def federate(
    configuration: Configuration | None = None,
    out: str | Path | None = None,
    engine: str = "local",
    resume: bool = False,
    say: Say = print,
    strategy: str = "FedAvg",
    round_seconds: float = 3600.0,
    wait_seconds: float = 300.0,
    accept_changes: bool = False,
    figures: bool = True,
    watch: bool = False,
    port: int = 0,
    **options: Any,
) -> Run:
    """Train an experiment over Flower into a folder, or resume the run that is there.

    Args:
        configuration: The experiment, of :func:`fedrain.configure`; or give its arguments instead.
        out: The folder; ``runs/NAME-ENGINE`` if it is left out.
        engine: ``local``: in this process; ``simulation``: on Flower's simulation engine (Ray);
            ``deployment``: a process for every node, over TLS on this machine.
        resume: Resume an interrupted run. What is not given stays what the folder says.
        say: What is said to people goes here.
        strategy: Flower's strategy: ``FedAvg``, ``FedAdam``, …
        round_seconds: The longest that a round may take.
        wait_seconds: How long to wait for nodes.
        accept_changes: Resume with a model, task or algorithm of your own whose source has changed
            since, a mended one say; the run's configuration lists what was accepted.
        figures: Whether figures are drawn in the folder at the end.
        watch: Whether a page on this machine shows the run, and its nodes, while it trains.
        port: Of the page; 0: any that is free.
        options: Arguments of :func:`fedrain.configure`.

    Returns:
        The finished run.
    """
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if "start_from" in options:
        raise InputError(NO_START)
    if configuration is not None and options:
        raise InputError(f"{', '.join(options)}: is already part of the configuration")
    prepare(simulation=engine == "simulation")
    if accept_changes:
        accept_federated(out, resume, Named(*(options.get(kind) for kind in KINDS)))
    if configuration is None:
        configuration = chosen(None if out is None else Path(out), resume, options)
    out = Path("runs") / f"{configuration.name}-{engine}" if out is None else Path(out)
    times = round_seconds, wait_seconds
    with watched(out, watch, port, say):
        run = play(configuration, out, resume, say, strategy, times, engine, find_engine(engine))
    if figures:
        from fedrain.experiment.report import write_figures

        write_figures(run)
    return run


def find_engine(name: str) -> Engine:
    """What plays a federation, by its name."""
    if name == "simulation":
        from fedrain.flower.simulation import run_simulation

        return run_simulation
    if name == "deployment":
        from fedrain.flower.deployment import run_whole

        return run_whole
    from fedrain.flower.local import run_local

    return run_local


def play(
    configuration: Configuration,
    out: Path,
    resume: bool,
    say: Say,
    strategy: str,
    times: tuple[float, float],
    called: str,
    engine: Engine,
) -> Run:
    """Run a federation to its end, unless it has finished already."""
    from fedrain.flower.server import Federation, open_run

    if resume and Run.is_finished(out):
        open_run(configuration, out, resume, strategy)
    else:
        federation = Federation(configuration, out, resume, say, strategy, *times)
        with alone_in(out):
            say(f"{configuration.name} over Flower ({called}), into {out}")
            try:
                engine(federation)
            except BaseException:
                federation.live.write("stopped")
                raise
    named = configuration.named
    return Run(out, named.env, named.model, named.algo)


def accept_federated(out: str | Path | None, resume: bool, named: Named) -> None:
    """Note in a federation's folder that it continues with today's sources of these things."""
    accept(out, resume, named, check_kept)


def check_kept(configuration: Configuration, out: Path) -> None:
    """Refuse what a federation has kept of another experiment than this."""
    checkpoints = checkpoints_of(configuration, out)
    checkpoints.identity = f"{configuration.identity}-local"  # as the engine in one process has it
    checkpoints.check()
    path = out / "federation" / "round.safetensors"
    if path.exists() and read_note(path).get("identity") != configuration.identity:
        raise InputError(f"{path}: the checkpoint belongs to another configuration")
