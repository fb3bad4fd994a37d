"""What an environment cannot be, each said in one line."""

from typing import TYPE_CHECKING

from fedrain.climate.columns import check_count, is_integer
from fedrain.climate.model import check_model
from fedrain.envs.observation import EXTRAS
from fedrain.errors import InputError, unknown

if TYPE_CHECKING:
    from fedrain.envs.setup import Setup

#: Of an episode: an evaluation keeps what every column has at each.
MOST_STEPS = 100_000
#: How the errors of the judged fields make a reward.
REWARD_SHAPES = ("square", "log")


def check_setup(environment: "Setup") -> None:
    """Refuse an environment that cannot be run."""
    model = environment.model
    check_model(model)
    _ = environment.division.cells  # refuses what cannot be divided
    if not len(environment.learnt):
        raise InputError("no parameter is learnt: name one whose bounds differ")
    symbols = [row.symbol for row in environment.learnt]
    for symbol in environment.unapplied:
        if symbol not in symbols:
            raise unknown("learnt parameter", symbol, symbols)
    for one in model.fields:
        if one.name in EXTRAS:
            raise InputError(f"no field can be called {one.name!r}: the name is reserved")
    for name, _ in environment.judged:
        environment.field(name)
    judged = [name for name, _ in environment.judged]
    for name, _ in environment.around:
        if name not in judged:
            raise unknown("judged field", name, judged)
    for name in environment.observed:
        if name not in EXTRAS:
            environment.field(name)
    if "season" in environment.observed and not hasattr(model, "season"):
        raise InputError(f"{type(model).__name__} has no season for agents to observe")
    if environment.reward_shape not in REWARD_SHAPES:
        raise unknown("reward shape", environment.reward_shape, REWARD_SHAPES)
    if not environment.judged:
        raise InputError("an environment needs a field to judge")
    length, early = environment.episode_length, environment.judged_early
    check_count("episode length", length, 1, MOST_STEPS)
    if not is_integer(early) or not 0 <= early < length:
        raise InputError(f"judged_early must be an integer from 0 to {length - 1}, not {early!r}")
    over, most = environment.judged_over, length - early
    if not is_integer(over) or not 1 <= over <= most:
        raise InputError(f"judged_over must be an integer from 1 to {most}, not {over!r}")
    region = environment.only_region
    if region is None:
        return
    if not is_integer(region) or not 0 <= region < environment.agents:
        raise InputError(
            f"region must be an integer from 0 to {environment.agents - 1}, not {region!r}"
        )
    if environment.shared_climate:
        raise InputError("one region of a shared climate cannot be run without the others")
