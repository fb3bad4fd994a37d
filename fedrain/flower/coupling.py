"""The shared climate over gRPC: the service, and the climate as a remote agent sees it.

``climate.proto`` has the messages; ``make proto`` makes ``climate_pb2.py`` from it.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import grpc
import numpy as np
from jaxtyping import Float

from fedrain import __version__
from fedrain.climate import ClimateModel
from fedrain.envs import Environment
from fedrain.errors import InputError
from fedrain.experiment.folder import Say
from fedrain.experiment.host import MissedStepError
from fedrain.flower import climate_pb2
from fedrain.flower.climate import Answer, Episode, SharedClimate
from fedrain.flower.credentials import Credentials
from fedrain.flower.programs import refuse_open_address
from fedrain.references import fingerprint

wire: Any = climate_pb2  # its classes are made as it is imported
SERVICE = "fedrain.climate.v1.Climate"
REQUESTS = {
    "Describe": (wire.DescribeRequest, wire.Description),
    "Begin": (wire.BeginRequest, wire.Observation),
    "Step": (wire.StepRequest, wire.Outcome),
}
#: So a cut connection is noticed, and a peer that asks often is not turned away.
ALIVE = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
)
#: What somebody's own climate model may leave out of its description.
OPTIONAL = ("target", "start", "forcing", "model")
#: Requests that wait for each other: as many threads as there may be agents and seeds.
THREADS = 256
RETRY_SECONDS = 0.5
#: The climate is not running, or ended before it answered.
LOST = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


@dataclass
class ClimateService:
    """What a climate model answers."""

    climate: SharedClimate
    keyed: bool  # whether a peer's certificate has to name its region

    def describe(self, _: Any, __: grpc.ServicerContext) -> Any:
        """What there is for an agent."""
        return describe(self.climate.environment)

    def begin(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The start of an episode."""
        self._admit(request.region, context)
        observation = self.climate.begin(request.region, _episode(request.episode))
        return wire.Observation(values=observation)

    def step(self, request: Any, context: grpc.ServicerContext) -> Any:
        """One step."""
        self._admit(request.region, context)
        action = np.asarray(request.parameters, np.float32)
        episode = _episode(request.episode)
        answer = self.climate.step(request.region, episode, request.time, action)
        return wire.Outcome(
            values=answer.observation,
            reward=answer.reward,
            ended=answer.ended,
            all_rewards=answer.of_all,
        )

    def _admit(self, region: int, context: grpc.ServicerContext) -> None:
        names = context.auth_context().get("x509_common_name", [])
        if self.keyed and f"region-{region}".encode() not in names:
            who = ", ".join(name.decode() for name in names)
            self.climate.say(f"a peer with the certificate of {who} acts for region {region}")
            context.abort(grpc.StatusCode.PERMISSION_DENIED, f"{who} is not region {region}")


def serve_climate(
    climate: SharedClimate, address: str, credentials: Credentials | None
) -> tuple[grpc.Server, int]:
    """Start to listen; the server, and its port."""
    service = ClimateService(climate, credentials is not None)
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(
            _answer(getattr(service, name.lower())), request.FromString, reply.SerializeToString
        )
        for name, (request, reply) in REQUESTS.items()
    }
    server = grpc.server(ThreadPoolExecutor(THREADS), options=ALIVE)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    try:
        if credentials is None:
            refuse_open_address(address)
            port = server.add_insecure_port(address)
        else:
            pair = (credentials.tls_key.read_bytes(), credentials.certificate.read_bytes())
            root = credentials.authority.read_bytes()
            secure = grpc.ssl_server_credentials([pair], root, require_client_auth=True)
            port = server.add_secure_port(address, secure)
    except RuntimeError:
        raise InputError(f"cannot listen on {address}") from None
    server.start()
    return server, port


class RemoteClimate:
    """A shared climate on another machine. Requests are repeated while it cannot be reached."""

    def __init__(
        self, address: str, credentials: Credentials | None, say: Say, outage_seconds: float = 600.0
    ) -> None:
        self.address, self.say, self.outage_seconds = address, say, outage_seconds
        if credentials is None:
            self._channel = grpc.insecure_channel(address, options=ALIVE)
        else:
            secure = grpc.ssl_channel_credentials(
                credentials.authority.read_bytes(),
                credentials.tls_key.read_bytes(),
                credentials.certificate.read_bytes(),
            )
            self._channel = grpc.secure_channel(address, secure, options=ALIVE)
        self.foreign = False  # whether it is of another program, whose skill we cannot compute
        self._calls = {
            name: self._channel.unary_unary(
                f"/{SERVICE}/{name}", request.SerializeToString, reply.FromString
            )
            for name, (request, reply) in REQUESTS.items()
        }

    def check(self, environment: Environment) -> None:
        """Refuse a climate that is not the experiment's."""
        told, own = self._ask("Describe", wire.DescribeRequest()), describe(environment)
        known = {field.name for field, _ in told.ListFields()}
        other = [
            field.name.replace("_", " ")
            for field in wire.Description.DESCRIPTOR.fields
            if (field.name in known or field.name not in OPTIONAL)
            and getattr(told, field.name) != getattr(own, field.name)
        ]
        if other:
            what = f"another {', '.join(other)}"
            raise InputError(
                f"the climate at {self.address} is not that of this experiment: {what}"
            )
        self.foreign = "model" not in known
        if self.foreign:
            self.say(f"the climate at {self.address} does not say that it is this experiment's")

    def begin(self, region: int, episode: Episode) -> Float[np.ndarray, " obs"]:
        """The start of an episode."""
        request = wire.BeginRequest(region=region, episode=_message(episode))
        return np.asarray(self._ask("Begin", request).values, np.float32)

    def step(
        self, region: int, episode: Episode, time: int, action: Float[np.ndarray, " action"]
    ) -> Answer:
        """One step."""
        request = wire.StepRequest(
            region=region, episode=_message(episode), time=time, parameters=action
        )
        outcome = self._ask("Step", request)
        observation = np.asarray(outcome.values, np.float32)
        of_all = np.asarray(outcome.all_rewards, np.float32)
        return Answer(
            observation, outcome.reward, bool(outcome.ended), of_all if of_all.size else None
        )

    def close(self) -> None:
        """Hang up."""
        self._channel.close()

    def _ask(self, name: str, request: Any) -> Any:
        lost: float | None = None
        while True:
            try:
                answer = self._calls[name](request)
            except grpc.RpcError as error:
                if error.code() not in LOST:
                    raise _translate(error, self.address) from None
                if lost is None:
                    lost = time.monotonic()
                    self.say(f"the climate at {self.address} cannot be reached: trying again")
                if time.monotonic() - lost > self.outage_seconds:
                    raise InputError(
                        f"no climate at {self.address} for {self.outage_seconds:g} s"
                    ) from None
                time.sleep(RETRY_SECONDS)
                continue
            if lost is not None:
                self.say(f"the climate at {self.address} can be reached again")
            return answer


def describe(environment: Environment) -> Any:
    """What the climate of an environment has for an agent."""
    low, high = environment.action_bounds
    params = environment.params
    return wire.Description(
        agents=environment.agents,
        observation_size=environment.observation_size,
        low=low,
        high=high,
        episode_length=environment.episode_length,
        target=_listed({name: params.target[name] for name, _ in environment.judged}),
        start=_listed(params.start),
        forcing=_listed(params.forcing),
        model=_hash_of(environment.model),
    )


def _hash_of(model: ClimateModel) -> str:
    """The same wherever the same version of FedRAIN has the same model."""
    told = json.dumps([__version__, type(model).__name__, fingerprint(model)], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def _listed(values: Mapping[str, Any]) -> Float[np.ndarray, " number"]:
    """All numbers, rounded: the same file gives the same ones on all machines."""
    flat = [np.ravel(np.asarray(value, np.float64)) for value in values.values()]
    return np.round(np.concatenate([*flat, np.zeros(0)]), 3)


def _answer(method: Callable[[Any, grpc.ServicerContext], Any]) -> Callable[[Any, Any], Any]:
    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return method(request, context)
        except MissedStepError as error:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except InputError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    return answer


def _translate(error: Any, address: str) -> Exception:
    if error.code() == grpc.StatusCode.FAILED_PRECONDITION:
        return MissedStepError(error.details())
    return InputError(f"the climate at {address} refuses: {error.details()}")


def _episode(message: Any) -> Episode:
    return Episode(message.number, message.seed, message.run)


def _message(episode: Episode) -> Any:
    return wire.Episode(number=episode.number, seed=episode.seed, run=episode.federation_id)
