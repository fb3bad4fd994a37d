"""``fedrain federate``: the same experiments over Flower."""

import argparse
import logging
import os
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrain.cli.messages import say
from fedrain.cli.options import (
    REFERENCES,
    add_environment,
    add_experiment,
    add_references,
    environment_options,
    folder_and_configuration,
    references,
)
from fedrain.cli.train import finish
from fedrain.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from fedrain.envs import Environment
    from fedrain.flower.server import Federation

ENGINES = {
    "local": "in one process (default)",
    "simulation": "on Flower's simulation engine (Ray)",
    "deployment": "a process for every node, over TLS on this machine",
}


class _Roles(argparse._SubParsersAction):  # type: ignore[type-arg]
    """Refuses options before the role: the role's own would silently replace them."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        for action in parser._actions:
            if getattr(namespace, action.dest, action.default) != action.default:
                option, role = action.option_strings[0], values[0]
                parser.error(f"{option} is given before {role}: put options after it")
        super().__call__(parser, namespace, values, option_string)


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("federate", help="the same experiments over Flower")
    _add_federation(parser)
    engines = "; ".join(f"{name}: {what}" for name, what in ENGINES.items())
    parser.add_argument("--engine", default="local", help=engines)
    parser.set_defaults(command=_run)
    roles = parser.add_subparsers(
        action=_Roles, metavar="ROLE", help="what this machine does, of several"
    )

    server = roles.add_parser("server", help="serve a federation to nodes on other machines")
    _add_federation(server)
    _add_listen(server, 9000)
    _add_security(server)
    server.set_defaults(command=_server)

    node = roles.add_parser("node", help="be one region of a federation")
    node.add_argument("--region", type=int, required=True, help="from 0, south to north")
    node.add_argument("--server", required=True, metavar="HOST:PORT", help="where the server is")
    node.add_argument("--climate", metavar="HOST:PORT", help="where the shared climate is (ebm-v3)")
    node.add_argument("--folder", metavar="DIR", help="what this node keeps (node-REGION)")
    add_references(node)
    _add_security(node)
    _add_watchdog(node)
    node.set_defaults(command=_node)

    climate = roles.add_parser("climate", help="run the climate that the agents of ebm-v3 share")
    _add_listen(climate, 9001)
    add_environment(climate)
    climate.add_argument(
        "--algo",
        metavar="file.py:Class",
        help="with --experiment, its algorithm, if it is not ours",
    )
    climate.add_argument(
        "--experiment", metavar="FILE", help="configuration.json, instead of an environment"
    )
    climate.add_argument("--folder", default="climate", metavar="DIR", help="its journal (climate)")
    climate.add_argument(
        "--patience", type=float, default=60.0, metavar="S", help="seconds to wait for an agent"
    )
    climate.add_argument(
        "--late", default="last", help="which parameters a late agent gets: last (default), static"
    )
    _add_security(climate)
    _add_watchdog(climate)
    climate.set_defaults(command=_climate)

    certificates = roles.add_parser("certificates", help="make certificates and keys")
    certificates.add_argument("folder", metavar="DIR")
    certificates.add_argument("--regions", type=int, default=6, metavar="N", help="nodes (6)")
    certificates.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="name or address of the server or the climate, as nodes know it; may be repeated",
    )
    certificates.set_defaults(command=_certificates)


def _add_federation(parser: argparse.ArgumentParser) -> None:
    add_experiment(parser)
    parser.add_argument(
        "--strategy", default="FedAvg", metavar="NAME", help="Flower's strategy (FedAvg)"
    )
    parser.add_argument(
        "--round-seconds", type=float, default=3600.0, metavar="S", help="longest round (3600)"
    )
    parser.add_argument(
        "--wait-seconds", type=float, default=300.0, metavar="S", help="wait for nodes (300)"
    )


def _add_listen(parser: argparse.ArgumentParser, port: int) -> None:
    where = f"where to listen (0.0.0.0:{port}; 127.0.0.1:{port} if insecure)"
    parser.add_argument("--listen", metavar="HOST:PORT", help=where)
    parser.set_defaults(port=port)


def _listen(options: argparse.Namespace) -> str:
    host = "127.0.0.1" if options.insecure else "0.0.0.0"
    return options.listen or f"{host}:{options.port}"


def _add_security(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--credentials", metavar="DIR", help="certificate and keys of this machine")
    parser.add_argument("--insecure", action="store_true", help="no TLS, on this machine only")


def _add_watchdog(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--until-input-ends", action="store_true", help=argparse.SUPPRESS)


def _prepare(*, simulation: bool = False) -> None:
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


def _federate(
    options: argparse.Namespace, engine: str, run: Callable[["Federation"], None]
) -> None:
    """Run a federation to its end, unless it has finished already."""
    from fedrain.experiment import load
    from fedrain.experiment.run import Run
    from fedrain.flower.server import Federation, open_run
    from fedrain.io import alone_in

    out, configuration = folder_and_configuration(options, f"-{engine}")
    strategy = options.strategy
    if options.resume and Run.is_finished(out):
        open_run(configuration, out, options.resume, strategy)
    else:
        times = options.round_seconds, options.wait_seconds
        federation = Federation(configuration, out, options.resume, say, strategy, *times)
        with alone_in(out):
            say(f"{configuration.name} over Flower ({engine}), into {out}")
            run(federation)
    named = {name: getattr(configuration.named, name) for name in REFERENCES}
    finish(load(out, **named))


def _run(options: argparse.Namespace) -> None:
    if options.engine not in ENGINES:
        raise InputError(f"there is no engine {options.engine!r}: use {', '.join(ENGINES)}")
    _prepare(simulation=options.engine == "simulation")
    run: Callable[[Federation], None]
    if options.engine == "local":
        from fedrain.flower.local import run_local as run
    elif options.engine == "simulation":
        from fedrain.flower.simulation import run_simulation as run
    else:
        from fedrain.flower.deployment import run_whole as run
    _federate(options, options.engine, run)


def _server(options: argparse.Namespace) -> None:
    _prepare()
    from fedrain.flower.credentials import read_credentials
    from fedrain.flower.deployment import check_listener, run_server

    credentials, address = read_credentials(options.credentials, options.insecure), _listen(options)
    check_listener(address, credentials)
    _federate(options, "deployment", lambda f: run_server(f, address, credentials))


def _node(options: argparse.Namespace) -> None:
    _prepare()
    from fedrain.flower.credentials import read_credentials
    from fedrain.flower.node import Resident, run_node
    from fedrain.flower.watchdog import end_with_input
    from fedrain.io import alone_in

    credentials = read_credentials(options.credentials, options.insecure)
    folder = Path(options.folder or f"node-{options.region}")
    named = references(options)
    resident = Resident(options.region, folder, options.climate, credentials, say, named)
    if options.until_input_ends:
        end_with_input()
    with alone_in(folder):
        run_node(resident, options.server)


def _climate(options: argparse.Namespace) -> None:
    _prepare()
    from fedrain.flower.climate import SharedClimate
    from fedrain.flower.coupling import serve_climate
    from fedrain.flower.credentials import read_credentials
    from fedrain.flower.watchdog import end_with_input
    from fedrain.io import alone_in

    credentials = read_credentials(options.credentials, options.insecure)
    address = _listen(options)
    if options.late not in ("last", "static"):
        raise InputError(f"a late agent gets its last parameters or static, not {options.late!r}")
    folder, static = Path(options.folder), options.late == "static"
    environment = _shared_environment(options)
    if options.until_input_ends:
        end_with_input()
    with alone_in(folder):
        climate = SharedClimate(environment, options.patience, say, static, folder)
        server, _ = serve_climate(climate, address, credentials)
        say(f"the climate of {environment.agents} agents at {address}")
        try:
            threading.Event().wait()
        finally:
            server.stop(grace=1.0)


def _shared_environment(options: argparse.Namespace) -> "Environment":
    """What the options name, or a stored experiment has."""
    from fedrain.envs import make
    from fedrain.experiment.resolve import from_dict
    from fedrain.flower.messages import needed
    from fedrain.io import read_json

    given = environment_options(options)
    if options.experiment is None:
        if options.algo is not None:
            raise InputError("--algo goes with --experiment: a climate does not learn")
        return make(options.env or "ebm-v3", **given)
    if more := [name for name in given if name not in REFERENCES]:
        texts = ", ".join(f"--{name.replace('_', '-')}" for name in more)
        raise InputError(f"--experiment says it all: drop {texts}")
    values = read_json(Path(options.experiment))
    return from_dict(values, needed(values, references(options))).make_environment()


def _certificates(options: argparse.Namespace) -> None:
    _prepare()
    from fedrain.flower.credentials import make_credentials

    if options.regions < 1:
        raise InputError(f"a federation has one region or more, not {options.regions}")
    folder = Path(options.folder)
    made = make_credentials(folder, options.regions, options.host)
    for name in ("server", "climate", *(f"region-{region}" for region in range(options.regions))):
        own = folder / name
        say(f"made {own}" if own in made else f"{own} exists, and is left as it is")
    say(f"{options.folder}/authority.key signs them: keep it, and copy it to no other machine")
