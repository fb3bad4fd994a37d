"""What an experiment is about, as plain values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedrain.climate import ClimateModel
from fedrain.climate.climatology import Target
from fedrain.envs.episode import Record
from fedrain.envs.models import energy_balance

#: One number, or the lowest and highest between which it is drawn in each episode.
Bounds = Any


@dataclass(frozen=True)
class Task:
    """What an experiment is about.

    Every field can be replaced by an option of :func:`make`, but ``shared_climate``,
    ``local_observation``, ``truth`` and ``summary``.

    Args:
        model: A climate model, or a function of options that makes one.
        agents: How many agents there are, if it is not said; 1: there is always one.
        shared_climate: One climate for all agents, or one for each.
        local_observation: Whether an agent sees its own region only.
        episode_length: Steps in an episode.
        learn: Symbols of the parameters that are learnt; all, if it is None.
        judge: Fields that are judged, with their weights; the model's first, if it is None.
        reward_shape: ``"square"``, the weighted mean squares added up; or ``"log"``, of each field
            log(1 + its weighted root mean square).
        around: Judged fields of which errors nearby count too, for what is carried from column to
            column: e times less every so many degrees.
        observe: What agents see: fields, ``"target"``, ``"error"``, ``"season"``, ``"place"``;
            the judged fields, if it is None.
        target: See :func:`fedrain.climate.target_fields`.
        start: Arguments of the model's ``init``: a number, or a pair to draw between.
        forcing: By name: a number, or a pair to draw between.
        ramp: Steps over which the forcing sets in.
        noise: Standard deviation of the sensors' error, as a share of each field's scale.
        analysis_every: Steps after which the model is set to what is observed, so that agents are
            judged by short forecasts; 0: never. Evaluations always run free.
        smooth: Weight, in the reward, of rough parameters: the mean square of differences between
            neighbouring columns, in units of the range.
        truth: A model, or a function that makes one for that of the agents, that runs beside it
            and is their target, under the same forcing and the same random numbers.
        tiles: Rows and columns of regions, of latitude–longitude columns.
        overlap: Whether bands may share latitudes, where they do not divide them equally.
        splits: Episodes that are not trained on, by name (``"validation"``, ``"test"``): what of
            ``start``, ``forcing``, ``ramp`` and ``noise`` is another there. ``"train"`` is the task
            as it is.
        unapplied: Symbols of parameters that agents set and the model does not get.
        unclipped: Whether observations may leave their bounds.
        judged_early: Steps before the end of an episode at which an evaluation is judged.
        judged_over: Steps up to then over whose mean it is judged.
        record: A function of model and length of an episode that gives a
            :class:`fedrain.envs.episode.Record` of a truth, in place of one that runs beside.
        extra: Of the package, which has to be installed for this task.
        summary: One line for ``fedrain envs``.
    """

    model: ClimateModel | Callable[..., ClimateModel] = energy_balance
    agents: int = 6
    shared_climate: bool = True
    local_observation: bool = True
    episode_length: int = 200
    learn: Sequence[str] | None = None
    judge: Mapping[str, float] | Sequence[str] | None = None
    reward_shape: str = "square"
    around: Mapping[str, float | int] = field(default_factory=dict)
    observe: Sequence[str] | None = None
    target: Target = None
    start: Mapping[str, Bounds] = field(default_factory=dict)
    forcing: Mapping[str, Bounds] = field(default_factory=dict)
    ramp: int = 0
    noise: float | None = None
    analysis_every: int = 0
    smooth: float = 0.0
    truth: ClimateModel | Callable[..., ClimateModel] | None = None
    tiles: tuple[int, int] | None = None
    overlap: bool = False
    splits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unapplied: Sequence[str] = ()
    unclipped: bool = False
    judged_early: int = 0
    judged_over: int = 1
    record: Callable[[Any, int], Record] | None = None
    extra: str = ""
    summary: str = ""

    @property
    def multi_agent(self) -> bool:
        """Whether there can be several agents."""
        return self.agents > 1
