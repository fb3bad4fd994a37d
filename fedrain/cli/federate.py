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
from fedrain.cli.train import add_experiment, chosen_configuration, finish
from fedrain.errors import InputError, MissingExtraError

if TYPE_CHECKING:
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
    _add_security(node)
    _add_watchdog(node)
    node.set_defaults(command=_node)

    climate = roles.add_parser("climate", help="run the climate that the agents of ebm-v3 share")
    _add_listen(climate, 9001)
    climate.add_argument("--agents", type=int, default=6, help="number of agents (6)")
    climate.add_argument("--target", metavar="FILE", help="NetCDF file with your own climatology")
    climate.add_argument("--experiment", metavar="FILE", help="configuration.json, instead of both")
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
    from fedrain.experiment.run import Run
    from fedrain.flower.server import Federation, open_run
    from fedrain.io import alone_in

    configuration, strategy = chosen_configuration(options), options.strategy
    out = Path("runs") / f"{configuration.name}-{engine}"
    out = out if options.out is None else Path(options.out)
    say(f"{configuration.name} over Flower ({engine}), into {out}")
    if options.resume and Run.is_finished(out):
        open_run(configuration, out, options.resume, strategy)
    else:
        times = options.round_seconds, options.wait_seconds
        federation = Federation(configuration, out, options.resume, say, strategy, *times)
        with alone_in(out):
            run(federation)
    finish(out)


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
    resident = Resident(options.region, folder, options.climate, credentials, say)
    if options.until_input_ends:
        end_with_input()
    with alone_in(folder):
        run_node(resident, options.server)


def _climate(options: argparse.Namespace) -> None:
    _prepare()
    from fedrain.experiment import configure
    from fedrain.experiment.configuration import from_dict
    from fedrain.flower.climate import SharedClimate
    from fedrain.flower.coupling import serve_climate
    from fedrain.flower.credentials import read_credentials
    from fedrain.flower.watchdog import end_with_input
    from fedrain.io import alone_in, read_json

    credentials = read_credentials(options.credentials, options.insecure)
    address = _listen(options)
    if options.late not in ("last", "static"):
        raise InputError(f"a late agent gets its last parameters or static, not {options.late!r}")
    if options.experiment is not None:
        configuration = from_dict(read_json(Path(options.experiment)))
    else:
        target = {} if options.target is None else {"target": options.target}
        configuration = configure(agents=options.agents, **target)
    folder, static = Path(options.folder), options.late == "static"
    environment = configuration.make_environment()
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
