"""A study: trials in a file that several processes share and that outlives each of them.

The file is Optuna's journal, lines of JSON that are only ever added. A process that is killed
loses the trial that it was at; the others, and the next that is started, resume from the rest.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrain.agents.presets import PARTS, hyperparameters_of, without_idle
from fedrain.cluster import Cluster, check_engine, connected
from fedrain.errors import FailureError, InputError, MissingExtraError
from fedrain.experiment.configuration import Configuration, digests
from fedrain.experiment.folder import Say
from fedrain.io import write_whole
from fedrain.reading import ARRAYS, TEXT, open_regular, parse_json
from fedrain.tuning.space import Space
from fedrain.tuning.trial import OBJECTIVES, handed_over, score, score_whole

if TYPE_CHECKING:
    import optuna

NAME = "fedrain"
NO_STUDY = "is not the file of a study, or is damaged"
WARM_TRIALS = 5  # before any trial is given up
KEPT = 75.0  # per cent of the trials so far that one has to be among, to continue


@dataclass(frozen=True)
class Tuning:
    """What is tuned: an experiment, the space of its hyperparameters, and for what.

    Args:
        configuration: The experiment; its seeds are those of a trial.
        space: What is searched, by name of the hyperparameter.
        objective: ``"skill"``: areaWRMSE of the globe; ``"return"``.
    """

    configuration: Configuration
    space: Space
    objective: str = "skill"

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise InputError(
                f"there is no objective {self.objective!r}: use one of {', '.join(OBJECTIVES)}"
            )
        for name, dimension in self.space.items():  # refuses what the algorithm would
            for value in dimension.ends:
                self.configured({name: value})

    def configured(self, values: dict[str, Any]) -> Configuration:
        """The experiment with these hyperparameters."""
        together = {**flat(self.configuration.hyperparameters), **values}
        # Where both are searched, what acts through an option is idle in trials without that.
        off = [name for name in self.space if not together.get(name)]
        changed = replace(self.configuration, hyperparameters=without_idle(together, off))
        algorithm = changed.make_algorithm()
        algorithm.check(self.configuration.make_environment().spec)
        return replace(changed, hyperparameters=hyperparameters_of(algorithm))

    @property
    def start(self) -> dict[str, Any]:
        """All hyperparameters as the preset has them, by their own names."""
        return flat(self.configuration.hyperparameters)

    @property
    def identity(self) -> str:
        """What makes trials comparable: all but the hyperparameters that are searched."""
        space = json.dumps({name: asdict(self.space[name]) for name in sorted(self.space)})
        return " ".join((self._fixed.identity, self.objective, space))

    @property
    def parts(self) -> dict[str, str]:
        """The same field by field, to tell which differ."""
        fixed = {
            k: v for k, v in digests(self._fixed).items() if k.split(".")[-1] not in self.space
        }
        space = {f"space.{name}": json.dumps(asdict(one)) for name, one in self.space.items()}
        return {**fixed, "objective": self.objective, **space}

    @cached_property
    def _fixed(self) -> Configuration:
        return self.configured({name: one.ends[0] for name, one in self.space.items()})


def flat(hyperparameters: dict[str, Any]) -> dict[str, Any]:
    """Hyperparameters by their own names, those of transforms and schedule among the others."""
    own = {name: value for name, value in hyperparameters.items() if name not in PARTS}
    for part in PARTS:
        own |= hyperparameters.get(part, {})
    return own


class Study:
    """The trials of a file.

    Args:
        path: The file, which is made if it is not there.
        tuning: What is tuned; a study of anything else is refused.
    """

    def __init__(self, path: Path, tuning: Tuning) -> None:
        self.path, self.tuning = path, tuning
        self._optuna = _optuna()
        self._study = self._open()
        held = self._study.user_attrs.get("identity")
        if held is None:
            self._study.set_user_attr("parts", tuning.parts)
            self._study.set_user_attr("identity", tuning.identity)
        elif held != tuning.identity:
            was, now = self._study.user_attrs.get("parts", {}), tuning.parts
            differ = sorted(k for k in {*was, *now} if was.get(k) != now.get(k)) if was else []
            verb = "differs" if len(differ) == 1 else "differ"
            what = f" ({', '.join(differ)} {verb})" if differ else ""
            raise InputError(
                f"{path}: holds the study of another experiment or of another space{what}: choose "
                "another --study"
            )

    def _open(self) -> "optuna.Study":
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        optuna = self._optuna
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _check_journal(self.path)
            storage = JournalStorage(JournalFileBackend(str(self.path)))
            return optuna.create_study(
                storage=storage,
                study_name=NAME,
                # Trials that others are at count as poor, so that nobody tries their values too.
                sampler=optuna.samplers.TPESampler(constant_liar=True),
                pruner=optuna.pruners.PercentilePruner(KEPT, n_startup_trials=WARM_TRIALS),
                load_if_exists=True,
            )
        except InputError:
            raise
        except OSError as error:
            raise InputError(f"{self.path}: cannot be opened ({error.strerror})") from None
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{self.path}: {NO_STUDY}") from None

    @property
    def finished(self) -> int:
        """Trials that came to an end, reached or given up."""
        states = self._optuna.trial.TrialState
        return len(self._study.get_trials(deepcopy=False, states=(states.COMPLETE, states.PRUNED)))

    @property
    def best(self) -> tuple[dict[str, Any], float] | None:
        """The best hyperparameters and what they reached."""
        states = self._optuna.trial.TrialState
        if not self._study.get_trials(deepcopy=False, states=(states.COMPLETE,)):
            return None
        return dict(self._study.best_params), float(self._study.best_value)

    def run(self, trials: int, say: Say) -> None:
        """Trials until the study has that many, those of other processes included."""
        if not self._study.get_trials(deepcopy=False):
            self._enqueue_start()
        while self.finished < trials:
            trial = self._study.ask()
            say(self._one(trial))

    def run_on(self, cluster: Cluster, trials: int, say: Say) -> None:
        """The same on a cluster, whose nodes need not see the file: each trial to its end."""
        if not self._study.get_trials(deepcopy=False):
            self._enqueue_start()
        asked: dict[str, optuna.Trial] = {}

        def ask() -> Iterator[tuple[str, tuple[Any, ...]]]:
            while self.finished + len(asked) < trials:
                trial = self._study.ask()
                asked[name := f"trial {trial.number}"] = trial
                configuration = self.tuning.configured(self._values(trial))
                yield name, (*handed_over(configuration), self.tuning.objective)

        def keep(name: str, found: float | None) -> None:
            say(self._tell(asked.pop(name), found))

        lost = cluster.run(score_whole, ask(), keep, say, at_once=cluster.cores)
        for name in lost:
            self._study.tell(asked.pop(name), state=self._optuna.trial.TrialState.FAIL)
        if lost:
            raise FailureError(f"{self.path}: {', '.join(lost)} failed: run it again")

    def _values(self, trial: "optuna.Trial") -> dict[str, Any]:
        space = self.tuning.space
        return {name: dimension.suggest(name, trial) for name, dimension in space.items()}

    def _one(self, trial: "optuna.Trial") -> str:
        values = self._values(trial)

        def hopeless(episode: int, value: float) -> bool:
            trial.report(value, episode)
            return trial.should_prune()

        found = score(self.tuning.configured(values), self.tuning.objective, hopeless)
        return self._tell(trial, found)

    def _tell(self, trial: "optuna.Trial", found: float | None) -> str:
        if found is None:
            self._study.tell(trial, state=self._optuna.trial.TrialState.PRUNED)
            return f"trial {trial.number}: given up"
        self._study.tell(trial, found)
        sign = -1 if self.tuning.objective == "return" else 1
        return f"trial {trial.number}: {self.tuning.objective} {sign * found:.4g}"

    def _enqueue_start(self) -> None:
        """What the preset has comes first, where the space holds it."""
        values, space = self.tuning.start, self.tuning.space
        if all(space[name].holds(values[name]) for name in space):
            self._study.enqueue_trial({name: values[name] for name in space})


def tune(
    tuning: Tuning,
    path: Path,
    trials: int,
    out: Path,
    say: Say = print,
    engine: str = "local",
    address: str | None = None,
) -> dict[str, Any]:
    """Run a study until it has that many trials, and write the best as a preset.

    Args:
        tuning: What is tuned.
        path: File of the study: it is made, or resumed.
        trials: How many trials the study shall have in all.
        out: TOML file for the preset.
        say: What is said to people goes here.
        engine: ``local``: in this process; ``ray``: on a Ray cluster.
        address: Of the cluster, ``machine:port`` or ``auto``; without it one of this machine alone.

    Returns:
        ``study``, ``preset``, ``trials``, ``objective``, ``best`` (what was reached) and
        ``hyperparameters``.
    """
    study = Study(path, tuning)
    if not check_engine(engine, address):
        study.run(trials, say)
    elif study.finished < trials:
        with connected(address, say) as cluster:
            study.run_on(cluster, trials, say)
    if study.best is None:
        raise InputError(f"{path}: no trial of the study has finished: all were given up")
    values, value = study.best
    sign = -1 if tuning.objective == "return" else 1
    text = preset_of(tuning, values, f"{tuning.objective} {sign * value:.4f}", study.finished)
    write_whole(out, lambda partial: partial.write_text(text, encoding="utf-8"))
    return {
        "study": str(path),
        "preset": str(out),
        "trials": study.finished,
        "objective": tuning.objective,
        "best": sign * value,
        "hyperparameters": tuning.configured(values).hyperparameters,
    }


def preset_of(tuning: Tuning, values: dict[str, Any], reached: str, trials: int) -> str:
    """A preset file with these hyperparameters."""
    configuration = tuning.configured(values)
    seeds = ", ".join(map(str, configuration.seeds))
    lines = [
        f"# The best of {trials} trials of `fedrain tune`: {reached} on {configuration.name},",
        f"# {configuration.episodes} episodes, mean over the seeds {seeds}: report it on others.",
        "",
        f"[{type(configuration.make_algorithm()).__name__.lower()}]",
        *(f"{name} = {json.dumps(v)}" for name, v in flat(configuration.hyperparameters).items()),
    ]
    return "\n".join(lines) + "\n"


def _check_journal(path: Path) -> None:
    """Refuse a file of something else, before Optuna writes to its end."""
    if path.exists():
        with open_regular(path, ARRAYS) as file:
            first = file.readline(TEXT)
        if first:
            with suppress(InputError, TypeError):
                if "op_code" in parse_json(first.decode("utf-8", errors="replace"), path):
                    return
            raise InputError(f"{path}: {NO_STUDY}")


def _optuna() -> Any:
    try:
        import optuna
    except ModuleNotFoundError:
        raise MissingExtraError("optuna", "tune") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
