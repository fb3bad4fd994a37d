"""An algorithm that is not of the package: how it is found, set, checked, and what it learns."""

import json
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fedrain.agents import SAC, TD3, Agent, Algorithm, Losses, load_algorithm, make_algorithm
from fedrain.agents.networks import Layer, apply_network, init_network, squash
from fedrain.agents.presets import hyperparameters_of
from fedrain.envs import make
from fedrain.errors import InputError
from tests.agents.by_hand import KEY, SOFT, SPEC, random_batch

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_algorithm.py"
REDQ = f"{EXAMPLE}:REDQ"


@dataclass(frozen=True, kw_only=True)
class Still(Algorithm):
    """The least that an algorithm can be: it never learns."""

    spread: float = 0.0
    sizes: tuple[int, ...] = (3, 4)

    def init(self, actor_key, critic_key, spec):
        actor = init_network(actor_key, (spec.observation_size, *self.hidden, spec.action_size))
        return Agent(actor, (), None, (), None, None)

    def act(self, actor, observation, noise, spec):
        return spec.centre + spec.half_range * squash(apply_network(actor, observation))

    def explore(self, agent, observation, noise, spec):
        return spec.clip(self.act(agent.actor, observation, noise, spec) + self.spread * noise)

    def update(self, agent, batch, key, step, spec):
        return agent, Losses(*(jnp.full((), jnp.nan),) * 3)


def test_what_inherits_from_a_built_in_one_takes_its_preset():
    for preset in ("fedrain", "paper"):
        own, sac = load_algorithm(REDQ, preset), load_algorithm("sac", preset)
        assert (own.critics, own.subset) == (6, 2)  # what the class declares is the class's
        theirs, ours = hyperparameters_of(own), hyperparameters_of(sac)
        differ = {name for name in theirs if theirs[name] != ours.get(name)}
        assert differ == {"critics", "subset"}
    assert load_algorithm(REDQ, settings={"critics": 9, "subset": 3}).critics == 9


def test_a_preset_may_have_a_table_for_it(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[still]\nwidth = 7\nbatch_size = 3\nspread = 0.5\nupdates = 2\n")
    still = load_algorithm(Still, path)
    assert (still.width, still.spread, still.schedule.updates) == (7, 0.5, 2)


def test_what_inherits_from_no_other_takes_what_is_common():
    spec = make("ebm-v3", agents=2, latitudes=12).spec
    still, sac = (load_algorithm(kind, "fedrain", spec) for kind in (Still, SAC))
    assert (still.transforms, still.schedule) == (sac.transforms, sac.schedule)
    assert (still.width, still.batch_size, still.discount) == (64, 64, 0.75)
    with pytest.raises(InputError, match="still: the hyperparameter batch_size is missing"):
        load_algorithm(Still, "paper")  # where nothing is common


def test_what_it_declares_is_stored_and_read():
    """Zeros and tuples too, which the package's own hyperparameters do not have."""
    still = load_algorithm(Still, settings={"spread": -1, "sizes": [1, 2]})
    assert still.sizes == (1, 2)
    assert make_algorithm(Still, json.loads(json.dumps(hyperparameters_of(still)))) == still
    default = load_algorithm(Still)
    assert make_algorithm(Still, json.loads(json.dumps(hyperparameters_of(default)))) == default
    with pytest.raises(InputError, match="still: spread must be a number, not 'wide'"):
        load_algorithm(Still, settings={"spread": "wide"})
    with pytest.raises(InputError, match="still: width cannot be 0"):
        load_algorithm(Still, settings={"width": 0})
    with pytest.raises(InputError, match="a hyperparameter is a number, text or a tuple"):
        load_algorithm(Still, settings={"sizes": {"a": 1}})
    with pytest.raises(InputError, match="subset must be from 1 to 6, not 7"):
        load_algorithm(REDQ, settings={"subset": 7})


@pytest.mark.parametrize("algorithm", [Still, REDQ], ids=["still", "redq"])
@pytest.mark.parametrize("env", ["ebm-v1", "ebm-v3"])
def test_its_functions_fit(algorithm, env):
    spec = make(env, agents=1 if env == "ebm-v1" else 2, latitudes=12).spec
    load_algorithm(algorithm, "fedrain", spec).check(spec)


def test_it_is_fine_without_a_decorator_if_it_has_no_fields_of_its_own():
    class Bolder(TD3):
        def target_value(self, values):
            return values.mean(axis=0)

    bolder = load_algorithm(Bolder, "corrected")
    assert bolder.policy_noise == load_algorithm("td3", "corrected").policy_noise
    bolder.check(SPEC)

    class Forgotten(TD3):
        critics: int = 5  # not a field: there would be two critics

    with pytest.raises(InputError, match=r"^Forgotten: decorate it with @dataclass"):
        load_algorithm(Forgotten, "corrected")


LOST = Agent(jnp.ones(3), (), None, (), None, None)
NOTHING = Losses(*jnp.zeros(3))
#: Functions in place of those of the class above, and what is said of them.
UNFIT = [
    ("init", lambda *_: 3, "init must give a fedrain.agents.Agent"),
    ("init", lambda: 3, r"init fails \(TypeError: "),
    ("init", lambda *_: LOST, "the actor must be a tuple of fedrain.agents.networks.Layer"),
    ("act", lambda *given: given[2], r"act gives shape \(4,\) instead of \(3,\)"),
    ("explore", lambda *_: (1, 2), r"explore gives shape None instead of \(3,\)"),
    ("update", lambda *given: given[1], "update must give an Agent and Losses"),
    (
        "update",
        lambda *given: (given[1]._replace(more=1.0), NOTHING),
        "update changes the structure, shapes or types of the agent",
    ),
    (
        "update",
        lambda *given: (given[1], NOTHING._replace(q=given[2].reward)),
        "each of the Losses must be one number",
    ),
    ("update", lambda *_: 1 / 0, r"update fails \(ZeroDivisionError: "),
]


@pytest.mark.parametrize(("name", "function", "message"), UNFIT)
def test_functions_that_do_not_fit_are_refused_in_one_line(name, function, message):
    unfit = type("Unfit", (Still,), {name: function})
    with pytest.raises(InputError, match=f"^Unfit: {message}") as error:
        load_algorithm(unfit, "fedrain", SPEC).check(SPEC)
    assert "\n" not in str(error.value)


# -------------------------------------------------------------------- the example


def redq(**settings):
    return load_algorithm(REDQ, "paper", settings={**SOFT, **settings})


def test_redq_asks_all_of_its_critics_in_turn():
    """Over many keys the target is the lowest of each pair, as often of one as of another."""
    algorithm = redq(critics=3)
    values = jnp.array([1.0, 2.0, 3.0])[:, None, None] * jnp.ones((3, 5, 1))
    keys = jax.random.split(KEY, 600)
    found = np.asarray(jax.vmap(lambda key: algorithm.target_values(values, key))(keys))
    assert (found == found[:, :1]).all()
    share = np.bincount(found[:, 0, 0].astype(int), minlength=4)[1:] / 600
    np.testing.assert_allclose(share, [2 / 3, 1 / 3, 0], atol=0.08)
    np.testing.assert_allclose(algorithm.policy_value(values), 2.0)


def test_redq_of_all_critics_has_the_target_of_sac():
    algorithm, sac = redq(critics=3, subset=3), SAC(**SOFT)
    agent = sac.init(KEY, KEY, SPEC)
    y = [a.critic_target(agent, random_batch(), KEY, SPEC) for a in (algorithm, sac)]
    np.testing.assert_allclose(*y, rtol=1e-6)
    assert len(agent.actor) == 3
    assert all(isinstance(layer, Layer) for layer in agent.actor)
