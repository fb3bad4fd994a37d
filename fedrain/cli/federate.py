"""``fedrain federate``: the same experiments over Flower."""

import argparse
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrain.cli.messages import say
from fedrain.cli.options import (
    REFERENCES,
    add_accept_changes,
    add_environment,
    add_experiment,
    add_references,
    add_watch,
    environment_options,
    folder_and_configuration,
    references,
)
from fedrain.cli.train import finish
from fedrain.errors import InputError, unknown

if TYPE_CHECKING:
    from fedrain.envs import Environment
    from fedrain.flower.running import Engine


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
    parser = commands.add_parser(
        "federate",
        help="train the same experiments over Flower",
        description="Train an experiment over Flower: in one process, simulated, or on several "
        "machines, each of which plays a role (server, node, climate).",
        examples={
            "In one process, with the results of fedrain train": "fedrain federate --env ebm-v2",
            "A process for each node, with TLS, on this machine": (
                "fedrain federate --engine deployment --agents 2 --episodes 15"
            ),
        },
    )
    _add_federation(parser)
    parser.add_argument(
        "--engine",
        default="local",
        metavar="NAME",
        help="local: in one process; simulation: on Flower's simulation engine (Ray); "
        "deployment: a process for each node, over TLS on this machine (default: local)",
    )
    parser.set_defaults(command=_run)
    roles = parser.add_subparsers(
        action=_Roles, metavar="ROLE", help="what this machine does in a federation of several"
    )

    server = roles.add_parser(
        "server",
        help="serve a federation to nodes on other machines",
        description="Serve a federation: wait for its nodes, average their policies, and write "
        "the run.",
        examples={
            "Two regions, without TLS, on this machine": (
                "fedrain federate server --env ebm-v2 --agents 2 --insecure"
            ),
        },
    )
    _add_federation(server)
    _add_listen(server, 9000)
    _add_security(server)
    server.set_defaults(command=_server)

    node = roles.add_parser(
        "node",
        help="train one region of a federation",
        description="Train the agent of one region. A node that is stopped can be started again "
        "with the same command.",
        examples={
            "The southernmost region, on the machine of the server": (
                "fedrain federate node --region 0 --server localhost:9000 --insecure"
            ),
        },
    )
    node.add_argument(
        "--region", type=int, required=True, metavar="N", help="number, from 0 in the south"
    )
    node.add_argument(
        "--server", required=True, metavar="ADDRESS:PORT", help="address of the server"
    )
    node.add_argument(
        "--climate",
        metavar="ADDRESS:PORT",
        help="address of the shared climate, for ebm-v3 (default: the node has its own climate)",
    )
    node.add_argument(
        "--folder", metavar="DIR", help="where this node stores its state (default: node-REGION)"
    )
    add_references(node)
    _add_security(node)
    _add_watchdog(node)
    node.set_defaults(command=_node)

    climate = roles.add_parser(
        "climate",
        help="run the climate that the agents of ebm-v3 share",
        description="Run the climate that the agents of ebm-v3 share: each sets the parameters of "
        "its own region.",
        examples={
            "For two regions, without TLS, on this machine": (
                "fedrain federate climate --env ebm-v3 --agents 2 --insecure"
            ),
        },
    )
    _add_listen(climate, 9001)
    add_environment(climate)
    climate.add_argument(
        "--algo",
        metavar="file.py:Class",
        help="with --experiment: its algorithm, if it is not part of the package",
    )
    climate.add_argument(
        "--experiment",
        metavar="FILE",
        help="configuration.json of a run, in place of the environment (default: none)",
    )
    climate.add_argument(
        "--folder",
        default="climate",
        metavar="DIR",
        help="folder of its journal (default: climate)",
    )
    climate.add_argument(
        "--patience",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds to wait for an agent (default: 60)",
    )
    climate.add_argument(
        "--late",
        default="last",
        metavar="NAME",
        help="parameters used for an agent that is late: last or static (default: last)",
    )
    _add_security(climate)
    _add_watchdog(climate)
    climate.set_defaults(command=_climate)

    certificates = roles.add_parser(
        "certificates",
        help="make certificates and keys",
        description="Make a certificate and keys for each machine of a federation: copy each "
        "subfolder to its machine. Existing ones are left as they are.",
        examples={
            "For two regions and a server at 192.0.2.7": (
                "fedrain federate certificates keys --regions 2 --address 192.0.2.7"
            ),
        },
    )
    certificates.add_argument("folder", metavar="DIR", help="folder to write to")
    certificates.add_argument(
        "--regions", type=int, default=6, metavar="N", help="number of nodes (default: 6)"
    )
    certificates.add_argument(
        "--address",
        "--host",  # its name before version 0.2
        dest="addresses",
        action="append",
        default=[],
        metavar="NAME",
        help="name or address by which nodes reach the server or the climate; may be repeated "
        "(default: this machine)",
    )
    certificates.set_defaults(command=_certificates)


def _add_federation(parser: argparse.ArgumentParser) -> None:
    add_experiment(parser)
    add_accept_changes(parser)
    add_watch(parser)
    parser.add_argument("--from", dest="start_from", help=argparse.SUPPRESS)  # refused
    parser.add_argument(
        "--strategy", default="FedAvg", metavar="NAME", help="Flower's strategy (default: FedAvg)"
    )
    parser.add_argument(
        "--round-seconds",
        type=float,
        default=3600.0,
        metavar="S",
        help="longest time for a round, in seconds (default: 3600)",
    )
    parser.add_argument(
        "--wait-seconds",
        type=float,
        default=300.0,
        metavar="S",
        help="longest wait for nodes, in seconds (default: 300)",
    )


def _add_listen(parser: argparse.ArgumentParser, port: int) -> None:
    where = f"where to listen (default: 0.0.0.0:{port}; 127.0.0.1:{port} with --insecure)"
    parser.add_argument("--listen", metavar="ADDRESS:PORT", help=where)
    parser.set_defaults(port=port)


def _listen(options: argparse.Namespace) -> str:
    own = "127.0.0.1" if options.insecure else "0.0.0.0"
    return options.listen or f"{own}:{options.port}"


def _add_security(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--credentials",
        metavar="DIR",
        help="folder with the certificate and keys of this machine (default: none)",
    )
    parser.add_argument(
        "--insecure", action="store_true", help="no TLS; only for a federation within this machine"
    )


def _add_watchdog(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--until-input-ends", action="store_true", help=argparse.SUPPRESS)


def _federate(options: argparse.Namespace, engine: str, run: "Engine") -> None:
    """Run a federation to its end, unless it has finished already."""
    from fedrain.experiment.watching import watched
    from fedrain.flower.running import NO_START, accept_federated, play

    if options.start_from is not None:
        raise InputError(NO_START)
    if options.accept_changes:
        accept_federated(options.out, options.resume, references(options))
    out, configuration = folder_and_configuration(options, f"-{engine}")
    times = options.round_seconds, options.wait_seconds
    with watched(out, options.watch, options.page_port, say):
        done = play(configuration, out, options.resume, say, options.strategy, times, engine, run)
    finish(done)


def _prepare(*, simulation: bool = False) -> None:
    from fedrain.flower.running import prepare

    prepare(simulation)


def _run(options: argparse.Namespace) -> None:
    from fedrain.flower.running import ENGINES, find_engine

    if options.engine not in ENGINES:
        raise unknown("engine", options.engine, ENGINES)
    _prepare(simulation=options.engine == "simulation")
    _federate(options, options.engine, find_engine(options.engine))


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
    from fedrain.reading import read_json

    given = environment_options(options)
    if options.experiment is None:
        if options.algo is not None:
            raise InputError("--algo goes with --experiment: a climate does not learn")
        return make(options.env or "ebm-v3", **given)
    if more := [name for name in given if name not in REFERENCES]:
        texts = ", ".join(f"--{name.replace('_', '-')}" for name in more)
        raise InputError(f"--experiment holds the whole experiment: drop {texts}")
    values = read_json(Path(options.experiment))
    return from_dict(values, needed(values, references(options))).make_environment()


def _certificates(options: argparse.Namespace) -> None:
    _prepare()
    from fedrain.climate.columns import check_count
    from fedrain.flower.credentials import MOST_REGIONS, make_credentials

    if options.regions < 1:
        raise InputError(f"a federation has at least one region, not {options.regions}")
    check_count("the number of regions", options.regions, 1, MOST_REGIONS)
    folder = Path(options.folder)
    made = make_credentials(folder, options.regions, options.addresses)
    for name in ("server", "climate", *(f"region-{region}" for region in range(options.regions))):
        own = folder / name
        say(f"made {own}" if own in made else f"{own} exists and is left as it is")
    say(
        f"{options.folder}/authority.key signs them: keep it, and do not copy it to another machine"
    )
