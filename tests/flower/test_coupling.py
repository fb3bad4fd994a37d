"""The shared climate over gRPC, with TLS."""

import threading

import grpc
import jax
import numpy as np
import pytest

from fedrain.envs import make
from fedrain.errors import InputError
from fedrain.experiment.host import MissedStepError
from fedrain.flower import coupling
from fedrain.flower.climate import Episode, SharedClimate
from fedrain.flower.coupling import RemoteClimate, serve_climate
from fedrain.flower.credentials import Credentials, make_credentials
from fedrain.flower.programs import free_port
from tests.experiment.small import SMALL

FIRST = Episode(0, 7, "a federation")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    make_credentials(folder, 2)
    return folder


@pytest.fixture
def environment():
    return make("ebm-v3", agents=2, **SMALL)


def agent_of(keys, region, address, say=print):
    return RemoteClimate(address, Credentials(keys / f"region-{region}"), say, outage_seconds=20.0)


def test_remote_agents_get_what_agents_here_get(tmp_path, keys, environment):
    """Also when the climate is lost in the middle of an episode, and comes back."""
    address = f"127.0.0.1:{free_port()}"
    server = Credentials(keys / "climate")

    def start():
        climate = SharedClimate(environment, 60.0, print, folder=tmp_path)
        return serve_climate(climate, address, server)[0]

    rng = np.random.default_rng(0)
    low, high = environment.action_bounds
    actions = rng.uniform(low, high, (10, 2, len(low))).astype(np.float32)
    found: dict[tuple[int, int], tuple] = {}
    half = threading.Event()
    said: list[str] = []

    def act(region):
        climate = agent_of(keys, region, address, said.append)
        climate.check(environment)
        climate.begin(region, FIRST)
        for step in range(10):
            if step == 5:
                half.set()
            found[region, step] = climate.step(region, FIRST, step, actions[step, region])
        climate.close()

    threads = [threading.Thread(target=act, args=(region,)) for region in (0, 1)]
    running = start()
    for thread in threads:
        thread.start()
    half.wait()
    running.stop(grace=None).wait()
    running = start()
    for thread in threads:
        thread.join()
    running.stop(grace=None).wait()
    state, _ = environment.reset()
    for step in range(10):
        key = jax.random.key(step)  # nothing is random in this environment
        state, observation, reward, ended = environment.step(key, state, actions[step])
        for region in (0, 1):
            got = found[region, step]
            np.testing.assert_allclose(got.observation, observation[region], atol=1e-4)
            assert got.reward == pytest.approx(float(reward[region]), rel=1e-5)
            np.testing.assert_allclose(got.of_all, reward, rtol=1e-5)
            assert got.ended == bool(ended)


@pytest.fixture
def served(keys, environment):
    said: list[str] = []
    climate = SharedClimate(environment, 5.0, said.append)
    server, port = serve_climate(climate, "127.0.0.1:0", Credentials(keys / "climate"))
    yield f"127.0.0.1:{port}", said
    server.stop(grace=None).wait()


def test_a_certificate_speaks_for_its_own_region_only(keys, served):
    address, said = served
    climate = agent_of(keys, 1, address)
    with pytest.raises(InputError, match="region-1 is not region 0"):
        climate.begin(0, FIRST)
    assert said == ["a peer with the certificate of region-1 acts for region 0"]
    assert len(climate.begin(1, FIRST)) == 6
    with pytest.raises(MissedStepError):
        climate.step(1, FIRST, 3, np.zeros(15))
    climate.close()


def test_peers_without_our_certificate_are_not_heard(tmp_path, served):
    address, _ = served
    make_credentials(tmp_path, 1)  # of another authority
    for credentials in (None, Credentials(tmp_path / "region-0")):
        climate = RemoteClimate(address, credentials, lambda _: None, outage_seconds=1.0)
        with pytest.raises(InputError, match="no climate at"):
            climate.begin(0, FIRST)
        climate.close()


def test_a_peer_without_a_certificate_is_not_even_told_what_there_is(keys, served):
    """It trusts our authority, so that only its own certificate is missing."""
    address, _ = served
    root = Credentials(keys / "region-0").authority.read_bytes()
    with grpc.secure_channel(address, grpc.ssl_channel_credentials(root)) as channel:
        ask = channel.unary_unary(f"/{coupling.SERVICE}/Describe")
        with pytest.raises(grpc.RpcError) as refused:
            ask(b"", timeout=10.0)
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"agents": 3}, "agents"),
        ({"target": np.linspace(-20.0, 20.0, 12)}, "target"),
        ({"start": 10.0}, "start"),
        ({"forcing": {"longwave": 4.0}}, "forcing"),
        ({"episode_length": 11}, "episode length"),
    ],
)
def test_a_climate_of_another_experiment_is_refused(keys, served, options, what):
    address, _ = served
    climate = agent_of(keys, 0, address)
    with pytest.raises(InputError, match=f"not that of this experiment: another .*{what}"):
        climate.check(make("ebm-v3", **{"agents": 2, **SMALL, **options}))
    climate.close()


def test_a_climate_model_of_ones_own_need_not_tell_its_target(keys, served, environment):
    address, _ = served
    climate = agent_of(keys, 0, address)
    told = coupling.describe(environment)
    for name in coupling.OPTIONAL:
        told.ClearField(name)
    climate._calls["Describe"] = lambda _: told
    climate.check(environment)
    climate.close()
