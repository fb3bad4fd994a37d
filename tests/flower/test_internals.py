"""What we take from Flower's inside: a release of Flower that lacks something of it is found here.

Nothing here imports ``fedrain.flower.internals`` as it is collected, so that a name which has gone
fails a test that names it. Which names, and how they are called, is read from its source.
"""

import ast
import asyncio
import importlib
import inspect
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest

import fedrain

PACKAGE = Path(fedrain.__file__).parent
INTERNALS = PACKAGE / "flower" / "internals.py"
PUBLIC = {
    "flwr.app", "flwr.clientapp", "flwr.serverapp", "flwr.serverapp.strategy", "flwr.simulation",
}  # fmt: skip

#: What our code uses of an object that it does not call by an imported name.
ATTRIBUTES = [
    ("flwr.supercore.runtime.RuntimeHttpClient", name)
    for name in ("AcquireTask", "PullTaskInput", "SendTaskHeartbeat", "close")
]
ATTRIBUTES += [
    ("flwr.supercore.control.ControlHttpClient", name)
    for name in ("RegisterNode", "StartRun", "close")
]
ATTRIBUTES += [
    ("flwr.supercore.heartbeat.HeartbeatSender", name) for name in ("start", "stop", "is_running")
]
ATTRIBUTES += [
    ("flwr.superlink.grid.HttpGrid", name)
    for name in ("push_messages", "pull_messages", "set_run", "close", "_runtime_client")
]
ATTRIBUTES += [("flwr.superlink.extensions", "get_middleware")]
ATTRIBUTES += [("flwr.supercore.run.Run", "create_empty")]
#: Fields of what Flower answers.
FIELDS = [
    ("flwr.proto.runtime_pb2.AcquireTaskResponse", ("task", "token")),
    ("flwr.proto.runtime_pb2.PullTaskInputResponse", ("task_id", "run", "context")),
    ("flwr.proto.run_pb2.Run", ("run_id",)),
    ("flwr.proto.message_pb2.Context", ("node_id",)),
    ("flwr.proto.control_pb2.RegisterNodeResponse", ("node_id",)),
]


def lost(what):
    return f"Flower {version('flwr')} {what}: adapt {INTERNALS.relative_to(PACKAGE.parent)}"


def find(path):
    """An object of Flower's by its dotted path, or a failure that names what is missing.

    As in an import, a module's attribute comes before a submodule of the same name.
    """
    found, so_far = importlib.import_module("flwr"), "flwr"
    for name in path.split(".")[1:]:
        so_far = f"{so_far}.{name}"
        if has(found, name):
            found = getattr(found, name)
            continue
        try:
            found = importlib.import_module(so_far)
        except ModuleNotFoundError:
            pytest.fail(lost(f"has no {so_far}"))
    return found


def has(found, name):
    """Without evaluating a property, which may object."""
    try:
        inspect.getattr_static(found, name)
    except AttributeError:
        return False
    return True


def imports(source):
    """Paths of what a source imports of Flower, by the names that it gives them."""
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "flwr"
        for alias in node.names
    }


def uses(source):
    """Paths of Flower's that a source uses, and the calls that it makes of them."""
    names = imports(source)

    def path(node):
        if isinstance(node, ast.Name):
            return names.get(node.id)
        if isinstance(node, ast.Attribute) and (owner := path(node.value)) is not None:
            return f"{owner}.{node.attr}"
        return None

    tree = ast.parse(source)
    paths = {found for node in ast.walk(tree) if (found := path(node)) is not None}
    calls = [
        (found, len(node.args), tuple(word.arg for word in node.keywords), node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (found := path(node.func)) is not None
    ]
    return sorted(paths | set(names.values())), calls


def check_call(path, number, words):
    """Whether what is there takes so many arguments, and these keywords."""
    found = find(path)
    if hasattr(found, "DESCRIPTOR"):  # a message: its fields are its arguments
        check_fields(path, words)
        return
    try:
        inspect.signature(found).bind(*[None] * number, **dict.fromkeys(words))
    except TypeError as error:
        pytest.fail(lost(f"takes other arguments for {path} ({error})"))


def check_fields(path, names):
    fields = find(path).DESCRIPTOR.fields_by_name
    for name in names:
        assert name in fields, lost(f"has no {path}.{name}")


SOURCE = INTERNALS.read_text(encoding="utf-8")
PATHS, CALLS = uses(SOURCE)


@pytest.mark.parametrize("path", PATHS)
def test_every_name_exists(path):
    owner, _, name = path.rpartition(".")
    if path not in imports(SOURCE).values():
        assert has(find(owner), name), lost(f"has no {path}")
    else:
        find(path)


@pytest.mark.parametrize(
    ("path", "number", "words"),
    [pytest.param(*call[:3], id=f"{call[0]}:{call[3]}") for call in CALLS],
)
def test_every_call_has_the_arguments_that_flower_takes(path, number, words):
    check_call(path, number, words)


@pytest.mark.parametrize(("owner", "name"), ATTRIBUTES)
def test_every_attribute_exists(owner, name):
    assert has(find(owner), name), lost(f"has no {owner}.{name}")


@pytest.mark.parametrize(("path", "names"), FIELDS)
def test_every_field_exists(path, names):
    check_fields(path, names)


def test_the_network_can_be_made_prompt():
    """It takes the arguments that we hand up, and connects by the invoker that we put in place."""
    check_call("flwr.superlink.grid.HttpGrid", 3, ("token",))
    network = find("flwr.superlink.grid.HttpGrid")("127.0.0.1:1", True, None, token="token")
    assert "_retry_invoker" in vars(network), lost("has no HttpGrid._retry_invoker")


def test_the_request_for_a_task_is_signed_by_its_name():
    from fedrain.flower import internals

    class Spy:
        def intercept(self, context, _):
            self.seen = context.rpc_method
            raise httpx.ConnectError("there is no SuperLink")

    spy = Spy()
    client = internals.Runtime("127.0.0.1:1", b"", None).client(spy)
    with pytest.raises(httpx.ConnectError):
        client.AcquireTask(internals.AcquireTaskRequest())
    client.close()
    assert f'"{spy.seen}"' in SOURCE, lost(f"calls the request {spy.seen}")


def test_strategies_keep_their_state_where_we_look_for_it():
    from fedrain.flower.strategy import MOMENTS

    keepers = {"FedAdam": 2, "FedAdagrad": 2, "FedYogi": 2, "FedAvgM": 1, "FedAvg": 0}
    for name, number in keepers.items():
        strategy = find(f"flwr.serverapp.strategy.{name}")()
        kept = [moment for moment in MOMENTS if moment in vars(strategy)]
        assert len(kept) == number, lost(f"keeps the state of {name} elsewhere than in {MOMENTS}")


def test_a_superlink_asks_for_our_middleware(monkeypatch):
    """A SuperLink as Flower makes it, asked by other machines and by its own."""
    from fedrain.flower import internals

    extensions = find("flwr.superlink.extensions")
    monkeypatch.setattr(extensions, "get_middleware", extensions.get_middleware)  # put back later
    internals.listen_to_nodes_only()
    app = find("flwr.superlink.main").create_app()

    async def ask(address, path):
        transport = httpx.ASGITransport(app, client=(address, 1234))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return (await client.post(path)).status_code

    for path in ("/v1/control/register-node", "/v1/control/start-run", "/v1/runtime/acquire-task"):
        assert asyncio.run(ask("192.0.2.7", path)) == 403, lost("ignores our middleware")
        assert asyncio.run(ask("127.0.0.1", path)) not in (403, 404), lost(f"has no {path}")
    path = "/v1/fleet/pull-messages"
    assert asyncio.run(ask("192.0.2.7", path)) not in (403, 404), lost(f"has no {path}")


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("from flwr.nowhere import thing", "has no flwr.nowhere"),
        ("from flwr.supercore.run import Walk", "has no flwr.supercore.run.Walk"),
        ("from flwr.supercore.run import Run\nRun.empty(1)", "has no flwr.supercore.run.Run.empty"),
        ("from flwr.supercore.fab import Fab\nFab(1, name=2)", "other arguments for .*Fab"),
        (
            "from flwr.proto.control_pb2 import StartRunRequest\nStartRunRequest(bundle=1)",
            "has no flwr.proto.control_pb2.StartRunRequest.bundle",
        ),
    ],
)
def test_what_is_missing_is_named(source, missing):
    """These checks would find it."""

    def check():
        paths, calls = uses(source)
        for path in paths:
            find(path)
        for path, number, words, _ in calls:
            check_call(path, number, words)

    with pytest.raises((pytest.fail.Exception, AssertionError), match=f"Flower .* {missing}"):
        check()


def test_nothing_else_imports_flowers_inside():
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        modules = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules.add(node.module or "")
        inside = {name for name in modules if name.split(".")[0] == "flwr"} - PUBLIC
        if inside and path != INTERNALS:
            found[str(path.relative_to(PACKAGE))] = inside
    assert not found, f"not public, so only {INTERNALS.name} may import it: {found}"
