"""The engine ``local``: Flower's apps and strategy in one process, without a server."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from fedrain.flower.client import make_client_app
from fedrain.flower.fleet import Fleet
from fedrain.flower.server import Federation, make_server_app

RUN, SERVER, FIRST_NODE = 1, 1, 2


#: A client app, or what stands in for one.
Client = Callable[[Message, Context], Message]


class LocalGrid(Grid):
    """A grid whose nodes are calls of the client app, one thread for each region."""

    def __init__(self, app: Client, regions: int) -> None:
        self._app = app
        self._contexts = {
            FIRST_NODE + region: Context(
                RUN, FIRST_NODE + region, {"region": region}, RecordDict(), {}
            )
            for region in range(regions)
        }
        self._workers = ThreadPoolExecutor(regions)
        self._replies: dict[str, Message] = {}

    def set_run(self, run: Run) -> None:
        """There is only one."""

    @property
    def run(self) -> Run:
        """There is only one."""
        return Run.create_empty(RUN)

    def create_message(self, *_: object, **__: object) -> Message:
        """Messages are made by their own constructor."""
        raise NotImplementedError("use flwr.app.Message")

    def get_node_ids(self) -> Iterable[int]:
        """Every region's."""
        return list(self._contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Deliver, and keep the replies."""
        replies = self.send_and_receive(messages)
        self._replies |= {reply.metadata.reply_to_message_id: reply for reply in replies}
        return list(self._replies)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Replies that were kept."""
        return [self._replies.pop(name) for name in message_ids if name in self._replies]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Deliver all at once: regions of one climate wait for each other."""
        return list(self._workers.map(self._deliver, messages, timeout=timeout))

    def _deliver(self, message: Message) -> Message:
        return self._app(message, self._contexts[message.metadata.dst_node_id])


def run_local(federation: Federation, wrap: Callable[[ClientApp], Client] | None = None) -> None:
    """Play a whole federation. ``wrap`` puts something between the grid and the client app."""
    configuration = federation.configuration
    fleet = Fleet(configuration, federation.out, federation.say)
    federation.store = fleet
    app = make_client_app(lambda *_: fleet)
    serve(federation, LocalGrid(app if wrap is None else wrap(app), configuration.agents))


def serve(federation: Federation, grid: Grid) -> None:
    """Run the server app on a grid of this process."""
    # Who speaks, which Flower's own engines tell the apps that they start.
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, RUN, SERVER
    make_server_app(federation)(grid, Context(RUN, SERVER, {}, RecordDict(), {}))
