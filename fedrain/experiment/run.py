"""A finished run, read from its folder."""

import html
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import xarray as xr

from fedrain.agents.networks import Network
from fedrain.baselines import known_limit, share_reached
from fedrain.climate import Physics, Skill
from fedrain.climate.models.host import clear_failures
from fedrain.envs import EnvParams
from fedrain.envs.options import changed_params, is_forced
from fedrain.errors import FailureError, InputError
from fedrain.experiment.configuration import Configuration, Named
from fedrain.experiment.evaluation import Evaluation, evaluate, summary
from fedrain.experiment.held import hold
from fedrain.experiment.integrity import check_configuration
from fedrain.experiment.policy import Policy, make_policy
from fedrain.experiment.resolve import check_stored, from_dict
from fedrain.experiment.results import (
    CLIMATE,
    WEIGHTS,
    check_policy,
    episodes_learnt,
    read_actors,
    read_physics,
    read_returns,
    read_skill,
    read_skills,
    read_weights_note,
)
from fedrain.reading import has_checksum, read_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fedrain.baselines.response import AnyResponse
    from fedrain.experiment.scenarios import Forced


class Run:
    """The folder of a finished run: configuration, returns, skill and policies.

    Args:
        folder: Where it is.
        env: The task that it was trained in, if that is of your own; what a folder says of such
            a thing is never imported on the folder's word.
        model: Likewise, the climate model.
        algo: Likewise, the algorithm.
    """

    def __init__(
        self, folder: str | Path, env: Any = None, model: Any = None, algo: Any = None
    ) -> None:
        self.folder = Path(folder)
        self._named = Named(env, model, algo)
        if not (self.folder / "configuration.json").is_file():
            raise InputError(f"{self.folder}: is not the folder of a run")
        if not self.is_finished(self.folder):
            check_stored(read_json(self.folder / "configuration.json"))
            raise InputError(f"{self.folder}: the run is not finished; train with --resume")

    @staticmethod
    def is_finished(folder: Path) -> bool:
        """Whether all results are there, and of all episodes."""
        episodes = episodes_learnt(folder)
        if episodes is None:
            return False
        return episodes in (0, read_json(folder / "configuration.json").get("episodes"))

    @cached_property
    def configuration(self) -> Configuration:
        """The experiment."""
        path = self.folder / "configuration.json"
        found = from_dict(values := read_json(path), self._named)
        check_configuration(path, values, read_weights_note(self.folder))
        return found

    @property
    def has_checksums(self) -> bool:
        """Whether damage to its files would be noticed: runs from before version 0.2 have none."""
        return has_checksum(self.folder / WEIGHTS)

    @cached_property
    def returns(self) -> xr.Dataset:
        """Returns and losses over the episodes."""
        return read_returns(self.folder, self.configuration)

    @cached_property
    def results(self) -> xr.Dataset:
        """Skill, judged fields and parameters over one episode."""
        return read_skill(self.folder, self.configuration)

    def skills(self, policy: str = "local") -> list[Skill]:
        """Skill of every seed."""
        return read_skills(self.results, policy)

    def summary(self, policy: str = "local") -> dict[str, Any]:
        """Skill, errors and return over the seeds, for JSON; seeds that diverged are named.

        Returns:
            ``bands`` and ``global`` (areaWRMSE of the first judged field), their mean and spread
            over the seeds, ``fields`` (error of each judged field, and of the fluxes at the top of
            the atmosphere), ``physics`` (:class:`fedrain.climate.Physics`), ``return`` (mean of
            agents and seeds) and ``share_of_limit`` (of the way from the static model to optimal
            control; None where that is not known). Of agents that learnt in the climate of another
            program, ``climate`` says so.
        """
        whole = self.whole_seeds(policy)
        data = self.results.sel(policy=policy, seed=whole)
        if (physics := read_physics(data)) is None:  # from before version 0.2: play them again
            return {
                **self.evaluate(policy),
                "share_of_limit": self._share_of_limit(float(data.returns.mean())),
            }
        means = data.rms_error.mean("seed")
        errors = {str(name): float(means.sel(field=name)) for name in data.field.values}
        skills = self.skills(policy)
        return self._summary(policy, whole, skills, data.returns.values, errors, physics)

    @cached_property
    def static(self) -> Evaluation:
        """The static model in the episodes in which the local policies were evaluated.

        Seeds that diverged are left out, if others have not.
        """
        environment = self.configuration.make_environment()
        finite = self._finite_seeds("local")
        seeds = tuple(finite or self.configuration.seeds)
        return hold(environment, environment.static_actions, seeds)

    def _summary(
        self,
        policy: str,
        whole: list[int],
        skills: list[Skill],
        returns: np.ndarray,
        errors: dict[str, float],
        physics: Physics,
        params: EnvParams | None = None,
    ) -> dict[str, Any]:
        seeds = dict(zip(self.configuration.seeds, skills, strict=True))
        mean = float(returns.mean())
        return {
            "policy": policy,
            **summary([seeds[seed] for seed in whole]),
            "fields": errors,
            "physics": physics.as_dict(),
            "return": mean,
            "share_of_limit": self._share_of_limit(mean) if params is None else None,
            "diverged_seeds": [seed for seed in seeds if seed not in whole],
            **({} if self.climate_note is None else {CLIMATE: self.climate_note}),
        }

    @property
    def climate_note(self) -> str | None:
        """What is to be known of the skill, if the agents learnt in another program's climate."""
        return self.results.attrs.get(CLIMATE)

    def _share_of_limit(self, mean_return: float) -> float | None:
        if self.climate_note is not None:  # the limit is that of another climate
            return None
        environment = self.configuration.make_environment()
        if (best := known_limit(environment)) is None:
            return None
        return share_reached(environment, mean_return, best, float(self.static.returns.mean()))

    def whole_seeds(self, policy: str = "local") -> list[int]:
        """The seeds that have not diverged."""
        if not (whole := self._finite_seeds(policy)):
            raise FailureError(f"{self.folder}: no seed has finite results")
        return whole

    @property
    def is_whole(self) -> bool:
        """Whether no seed has diverged."""
        return self._finite_seeds("local") == list(self.configuration.seeds)

    def _finite_seeds(self, policy: str) -> list[int]:
        return self._undiverged(self.skills(policy))

    def _undiverged(self, skills: list[Skill]) -> list[int]:
        """Seeds with finite skill that were trained to the end.

        One that diverged has no returns from then on. A node that missed a round has none of it
        either, but others have.
        """
        last = self.returns.returns.transpose("episode", "seed", "agent").values[-1]
        found = zip(self.configuration.seeds, skills, np.isfinite(last).any(axis=1), strict=True)
        return [seed for seed, skill, ended in found if ended and np.isfinite(skill.globe)]

    def scenarios(
        self, policy: str = "local", say: Callable[[str], None] = print
    ) -> dict[str, "Forced"]:
        """Skill in climates that the policies have not seen: ``fedrain evaluate RUN --forcing``.

        Args:
            policy: ``local``, each agent's own, or ``global``, their average.
            say: Told once, in one line, what the model lacks and is left out.

        Returns:
            By scenario (other starts, a doubling of CO₂, another sun, a warmer target), the skill
            of the policies (``policy``, of every seed) and of what they are held against
            (``static``, ``constant``, ``proportional``); ``as_dict()`` of each is for JSON.
        """
        from fedrain.experiment.scenarios import evaluate_forced

        return evaluate_forced(self, policy, say)

    def respond(
        self,
        policy: str = "local",
        forcings: Sequence[float] | None = None,
        say: Callable[[str], None] = print,
    ) -> dict[str, dict[float, "AnyResponse"]]:
        """How the climate answers a forcing at equilibrium: ``fedrain evaluate RUN --response``.

        Args:
            policy: ``local``, each agent's own, or ``global``, their average.
            forcings: In W m⁻² of outgoing longwave radiation; −3.7, as a doubling of CO₂ gives, if
                left out. Where the temperature of the sea is given, in K by which it is warmer; 4.
            say: Told in one line what is left out.

        Returns:
            With the policy (``policy``, mean over the seeds), with ``static``, ``constant`` and
            ``proportional`` parameters, and in ``truth`` where the task knows it; for each forcing
            ``warming`` (K), ``feedback`` (W m⁻² K⁻¹) and ``polar_amplification``; where the sea is
            given, ``feedback`` alone, and what it is the sum of.
        """
        from fedrain.experiment.response import responses

        check_policy(policy)
        chosen = None if forcings is None else tuple(map(float, forcings))
        return responses(self, policy, chosen, say=say)

    def held_out(
        self, split: str = "test", policy: str = "local", episodes: int | None = None
    ) -> dict[str, Any]:
        """Errors in episodes kept from training: ``fedrain evaluate RUN --split test``.

        Args:
            split: ``validation``, ``test`` or another of the task.
            policy: ``local``, each agent's own, or ``global``, their average.
            episodes: How many each seed plays of the split, and as many of the training's; 16, if
                left out.

        Returns:
            ``train`` and the split, each with the mean errors {field: error} of ``policy`` and
            ``static``, and ``per_seed``; ``gap`` {field: by how much the error is greater than in
            training}.
        """
        from fedrain.experiment.held_out import EPISODES, held_out

        check_policy(policy)
        return held_out(self, split, policy, EPISODES if episodes is None else episodes)

    @clear_failures()
    def evaluate(self, policy: str = "local", **episode: Any) -> dict[str, Any]:
        """Skill in an episode with another start, target, forcing, ramp or noise, as summary().

        Args:
            policy: ``local``, each agent's own, or ``global``, their average.
            episode: ``start``, ``target``, ``forcing``, ``ramp`` and ``noise``, as of
                :func:`fedrain.envs.make`.

        Returns:
            As :meth:`summary`; ``share_of_limit`` is None.
        """
        check_policy(policy)
        environment = self.configuration.make_environment()
        params = changed_params(environment, episode)
        if episode.get("ramp") and not is_forced(environment, params):
            raise InputError("ramp cannot apply: there is no forcing; give one too")
        seeds = tuple(self.configuration.seeds)
        algorithm = self.configuration.make_algorithm()
        played = evaluate(environment, algorithm, self.actors(policy), seeds, params)
        skills = played.skill(environment)
        whole = self._undiverged(skills)
        finite = np.isin(seeds, whole)
        if not whole:
            raise FailureError(f"{self.folder}: no seed has finite results")
        errors = played.errors(environment)
        means = {name: float(values[finite].mean()) for name, values in errors.items()}
        every = played.physics(environment)
        physics = Physics.mean([every[i] for i in np.flatnonzero(finite)])
        return self._summary(policy, whole, skills, played.returns[finite], means, physics, params)

    def policy(self, seed: int | None = None, agent: int = 0, kind: str = "local") -> Policy:
        """One agent's policy: observations in the units of the fields → parameters as an action.

        Args:
            seed: One of the run's; the first, if it is left out.
            agent: From 0, south to north.
            kind: ``local``, the agent's own, or ``global``, the average.

        Returns:
            A function of observations ``[..., obs]`` that gives actions ``[..., action]``.
        """
        seed = self.configuration.seeds[0] if seed is None else seed
        return make_policy(self.configuration, self.actors(kind), seed, agent)

    def actors(self, kind: str = "local") -> Network:
        """The weights of all actors, stacked as seed, agent."""
        return read_actors(self.folder, self.configuration, kind)

    def whole_actors(self, kind: str = "local") -> tuple[tuple[int, ...], Network]:
        """The seeds that have not diverged, and their actors."""
        seeds = tuple(self.whole_seeds(kind))
        places = np.array([self.configuration.seeds.index(seed) for seed in seeds])
        return seeds, jax.tree.map(lambda leaf: np.asarray(leaf)[places], self.actors(kind))

    def plot_returns(self) -> "Figure":
        """Returns over the run."""
        from fedrain.experiment.report import returns_figure

        return returns_figure(self)

    def plot_profile(self, field: str | None = None) -> "Figure":
        """A judged field at six times of an episode; the first, if none is named."""
        from fedrain.experiment.report import profile_figure

        return profile_figure(self, field)

    def plot_parameters(self) -> "Figure":
        """What the agents have learnt to set."""
        from fedrain.experiment.report import parameters_figure

        return parameters_figure(self)

    def plot_map(self, field: str | None = None) -> "Figure":
        """The error of a judged field over the globe, of a model with longitudes."""
        from fedrain.experiment.report import map_figure

        return map_figure(self, field)

    def film(
        self,
        out: str | Path | None = None,
        seed: int | None = None,
        field: str | None = None,
        level: float | None = None,
        fps: int = 10,
    ) -> Path:
        """Write a film of the training: ``fedrain film RUN``.

        Profile and learnt parameters from episode to episode, beside the error at each latitude.

        Args:
            out: The file, ``.gif`` or ``.mp4``; ``film.gif`` in the run's folder if left out.
            seed: One of the run's; the mean of those that have not diverged if left out.
            field: A judged field; the first if left out.
            level: One of the field's levels; their mean if left out.
            fps: Frames a second.

        Returns:
            The file.
        """
        from fedrain.experiment.film import film

        return film(self, out, seed, field, level, fps)

    def __repr__(self) -> str:
        configuration = self.configuration
        episodes, seeds = configuration.episodes, len(configuration.seeds)
        found = self.summary()
        share = found["share_of_limit"]
        reached = "" if share is None else f" ({100 * share:.0f} % of the way to optimal control)"
        return (
            f"Run({configuration.name}: {episodes} episode{'s' * (episodes > 1)}, "
            f"{seeds} seed{'s' * (seeds > 1)}, "
            f"areaWRMSE {found['global_mean']:.3f}, "
            f"return {found['return']:,.0f}{reached})"
        )

    def _repr_html_(self) -> str:
        from fedrain.experiment.report import skill_report

        title, table = html.escape(repr(self)), html.escape(skill_report(self))
        return f"<p><b>{title}</b></p><pre>{table}</pre>"


def load(folder: str | Path, env: Any = None, model: Any = None, algo: Any = None) -> Run:
    """A finished run; what of it is not of the package is named again: see :class:`Run`.

    Args:
        folder: Where it is.
        env: The task, if it is of your own: ``file.py:task``, or a :class:`fedrain.envs.Task`.
        model: Likewise, the climate model.
        algo: Likewise, the algorithm.

    Returns:
        The run.
    """
    return Run(folder, env, model, algo)
