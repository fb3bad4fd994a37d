"""``fedrain federate``: the same experiments over Flower."""

import argparse
import logging
import os
import threading
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrain.cli.messages import say
from fedrain.cli.train import add_experiment, chosen_configuration, finish
from fedrain.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from fedrain.federation.flower.server import Federation

ENGINES = {
    "local": "in one process (default)",
    "simulation": "on Flower's simulation engine (Ray)",
    "deployment": "a process for every node, over TLS on this machine",
}


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("federate", help="the same experiments over Flower")
    _add_federation(parser)
    engines = "; ".join(f"{name}: {what}" for name, what in ENGINES.items())
    parser.add_argument("--engine", default="local", help=engines)
    parser.set_defaults(command=_run)
    roles = parser.add_subparsers(metavar="ROLE", help="what this host is, of several")

    server = roles.add_parser("server", help="serve a federation to nodes on other hosts")
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
    _add_leash(node)
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
    _add_leash(climate)
    climate.set_defaults(command=_climate)

    certificates = roles.add_parser("certificates", help="make certificates and keys for the hosts")
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
    parser.add_argument("--credentials", metavar="DIR", help="certificate and keys of this host")
    parser.add_argument("--insecure", action="store_true", help="no TLS, on this machine only")


def _add_leash(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--until-input-ends", action="store_true", help=argparse.SUPPRESS)


def _prepare(*, simulation: bool = False) -> None:
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # else it tells of every process
    needed = {"flwr": "flower", **({"ray": "simulation"} if simulation else {})}
    for package, extra in needed.items():
        try:
            import_module(package)
        except ModuleNotFoundError:
            raise MissingExtraError(package, extra) from None
    # Flower's own lines are for those who look for them; ours tell what matters.
    logging.getLogger("flwr").setLevel(logging.ERROR)


def _federation(options: argparse.Namespace, engine: str) -> "Federation":
    from fedrain.federation.flower.server import Federation

    configuration = chosen_configuration(options)
    out = Path("runs") / f"{configuration.name}-{engine}"
    out = out if options.out is None else Path(options.out)
    say(f"{configuration.name} over Flower ({engine}), into {out}")
    return Federation(
        configuration,
        out,
        options.resume,
        say,
        options.strategy,
        options.round_seconds,
        options.wait_seconds,
    )


def _run(options: argparse.Namespace) -> None:
    if options.engine not in ENGINES:
        raise InputError(f"there is no engine {options.engine!r}: use {', '.join(ENGINES)}")
    _prepare(simulation=options.engine == "simulation")
    federation = _federation(options, options.engine)
    if options.engine == "local":
        from fedrain.federation.flower.local import run_local

        run_local(federation)
    elif options.engine == "simulation":
        from fedrain.federation.flower.simulation import run_simulation

        run_simulation(federation)
    else:
        from fedrain.federation.flower.deployment import run_whole

        run_whole(federation)
    finish(federation.out)


def _server(options: argparse.Namespace) -> None:
    _prepare()
    from fedrain.federation.flower.deployment import read_credentials, run_server
    from fedrain.files import alone_in

    credentials = read_credentials(options.credentials, options.insecure)
    federation = _federation(options, "deployment")
    with alone_in(federation.out / "federation"):
        run_server(federation, _listen(options), credentials)
    finish(federation.out)


def _node(options: argparse.Namespace) -> None:
    _prepare()
    from fedrain.federation.flower.deployment import end_with_input, read_credentials
    from fedrain.federation.flower.node import Resident, run_node
    from fedrain.files import alone_in

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
    from fedrain.experiment.storage import read_json
    from fedrain.federation.flower.climate import SharedClimate
    from fedrain.federation.flower.coupling import serve_climate
    from fedrain.federation.flower.deployment import end_with_input, read_credentials
    from fedrain.files import alone_in

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
    from fedrain.federation.flower.credentials import make_credentials

    if options.regions < 1:
        raise InputError(f"a federation has one region or more, not {options.regions}")
    made = make_credentials(Path(options.folder), options.regions, options.host)
    for folder in made:
        say(f"made {folder}")
    say(f"{options.folder}/authority.key signs them: keep it, and copy it to no other host")
