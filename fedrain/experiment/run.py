"""A finished run, read from its folder."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from fedrain.agents import Lens
from fedrain.agents.networks import Network
from fedrain.agents.step import EVALUATION, agent_keys, spaces_of, start_training
from fedrain.climate import Skill
from fedrain.errors import FailureError, InputError
from fedrain.experiment.configuration import Configuration, from_dict
from fedrain.experiment.evaluation import evaluation_noise, summary
from fedrain.experiment.records import POLICIES
from fedrain.io import read_arrays, read_dataset, read_json, unflatten

RESULTS = ("returns.nc", "skill.nc", "weights.safetensors")


class Run:
    """The folder of a finished run: configuration, returns, skill and policies."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not (self.folder / "configuration.json").is_file():
            raise InputError(f"{self.folder}: is not the folder of a run")
        if not self.is_finished(self.folder):
            raise InputError(f"{self.folder}: the run is not finished; train with --resume")

    @staticmethod
    def is_finished(folder: Path) -> bool:
        """Whether all results are there."""
        return all((folder / name).is_file() for name in RESULTS)

    @cached_property
    def configuration(self) -> Configuration:
        """The experiment."""
        return from_dict(read_json(self.folder / "configuration.json"))

    @cached_property
    def returns(self) -> xr.Dataset:
        """Returns and losses over the episodes."""
        return read_dataset(self.folder / "returns.nc")

    @cached_property
    def results(self) -> xr.Dataset:
        """Skill, profiles and parameters over one episode."""
        return read_dataset(self.folder / "skill.nc")

    def skills(self, policy: str = "local") -> list[Skill]:
        """Skill of every seed."""
        if policy not in POLICIES:
            raise InputError(f"there is no policy {policy!r}: use one of {', '.join(POLICIES)}")
        data = self.results.sel(policy=policy)
        return [
            Skill(tuple(bands.tolist()), float(globe))
            for bands, globe in zip(
                data.areawrmse.values, data.areawrmse_global.values, strict=True
            )
        ]

    def summary(self, policy: str = "local") -> dict[str, Any]:
        """Skill over the seeds, for JSON; seeds that broke are left out and named."""
        skills = dict(zip(self.configuration.seeds, self.skills(policy), strict=True))
        whole = self.whole_seeds(policy)
        broken = [seed for seed in skills if seed not in whole]
        found = summary([skills[seed] for seed in whole])
        return {"policy": policy, **found, "broken_seeds": broken}

    def whole_seeds(self, policy: str = "local") -> list[int]:
        """The seeds that have not broken."""
        pairs = zip(self.configuration.seeds, self.skills(policy), strict=True)
        if not (whole := [seed for seed, skill in pairs if np.isfinite(skill.globe)]):
            raise FailureError(f"{self.folder}: no seed has finite results")
        return whole

    def policy(
        self, seed: int | None = None, agent: int = 0, kind: str = "local"
    ) -> Callable[..., Float[Array, " action"]]:
        """One agent's policy, a plain function: observation in °C → parameters as an action.

        Where the policy draws its actions (``evaluate_by_sampling``) it takes the ``step`` of the
        episode as well, for each of which it draws anew.
        """
        seeds = self.configuration.seeds
        seed = seeds[0] if seed is None else seed
        if seed not in seeds or not 0 <= agent < self.configuration.agents:
            raise InputError(f"the run has no agent {agent} of seed {seed}")
        environment = self.configuration.make_environment()
        algorithm = self.configuration.make_algorithm()
        lens = Lens(algorithm, spaces_of(environment))
        actor = jax.tree.map(lambda leaf: leaf[seeds.index(seed), agent], self.actors(kind))
        key = agent_keys(jnp.asarray(seed, jnp.uint32), EVALUATION, (agent,))[0]

        @jax.jit
        def policy(
            observation: Float[Array, " obs"], step: int | Int[Array, ""] = 0
        ) -> Float[Array, " action"]:
            (seen,) = lens.observation(jnp.asarray(observation)[None], (agent,))
            noise = evaluation_noise(key, step, lens.spaces)
            return lens.action(algorithm.act(actor, seen, noise, lens.spaces))

        return policy

    def actors(self, kind: str = "local") -> Network:
        """The weights of all actors, stacked as seed, agent."""
        arrays, _ = read_arrays(self.folder / "weights.safetensors")
        environment = self.configuration.make_environment()
        like = jax.eval_shape(
            lambda seeds: (
                jax.vmap(
                    lambda seed: start_training(
                        self.configuration.make_algorithm(),
                        spaces_of(environment),
                        environment.regions,
                        seed,
                        1,
                    )
                )(seeds).agents.actor
            ),
            jnp.asarray(self.configuration.seeds, jnp.uint32),
        )
        mine = {
            n.removeprefix(f"{kind}/"): a for n, a in arrays.items() if n.startswith(f"{kind}/")
        }
        return unflatten(like, mine, str(self.folder / "weights.safetensors"))


def load(folder: str | Path) -> Run:
    """A finished run."""
    return Run(folder)
