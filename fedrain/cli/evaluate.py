"""``fedrain evaluate``: skill of a trained run."""

import argparse
import re
from typing import TYPE_CHECKING, Any

from fedrain.cli import values
from fedrain.cli.messages import add_json, print_json, say, say_if_unchecked
from fedrain.cli.options import REFERENCES, add_noise, add_references, add_start, given
from fedrain.cli.target import add_target
from fedrain.errors import InputError

if TYPE_CHECKING:
    from fedrain.experiment import Run

#: What an episode may have that those of the training did not.
EPISODE = ("target", "start", "forcing", "ramp", "noise")
#: A flag that was given without a value.
ALONE = ""


def add(commands: Any) -> None:
    """Add the command to the parser."""
    evaluate = commands.add_parser(
        "evaluate",
        help="show the skill of a trained run",
        description="Show the skill of a trained run, in the episodes of its training or in "
        "others: another target, start or forcing, episodes kept from training, or how its "
        "climate responds to a forcing.",
        examples={
            "Skill of the agents' own policies": "fedrain evaluate runs/six-agents",
            "Skill of their average, for a program": (
                "fedrain evaluate runs/six-agents --policy global --json"
            ),
            "A table of climates that the policy has not seen": (
                "fedrain evaluate runs/six-agents --forcing"
            ),
            "One other climate": (
                "fedrain evaluate runs/six-agents --forcing longwave=-3.7 --ramp 100"
            ),
            "Response of the climate to a doubling of CO2": (
                "fedrain evaluate runs/six-agents --response"
            ),
        },
    )
    evaluate.add_argument("run", metavar="RUN", help="folder of the run")
    evaluate.add_argument(
        "--policy",
        default="local",
        metavar="NAME",
        help="local, the agents' own, or global, their average (default: local)",
    )
    add_json(evaluate)
    add_references(evaluate)
    evaluate.add_argument(
        "--response",
        action="store_true",
        help="equilibrium response of the climate with this policy to a doubling of CO2: "
        "a forcing of −3.7 W m⁻² on outgoing longwave radiation",
    )
    evaluate.add_argument(
        "--split",
        metavar="NAME",
        help="evaluate in episodes of the task that were kept from training: validation or test "
        "(default: those of the training)",
    )
    group = evaluate.add_argument_group("an episode other than those of the training")
    add_target(group)
    add_start(group)
    group.add_argument(
        "--forcing",
        type=_forcing_or_all,
        action="append",
        metavar="NAME=VALUE",
        help="a forcing of the climate, for one other episode; without a value: a table of "
        "climates that the policy has not seen (default: none)",
    )
    group.add_argument(
        "--ramp",
        type=int,
        metavar="N",
        help="steps over which the forcing sets in (default: that of the run)",
    )
    add_noise(group)
    evaluate.set_defaults(rewrite=_rewritten)
    evaluate.set_defaults(command=_run)


def _rewritten(arguments: list[str]) -> list[str]:
    """``--forcing`` alone gets an empty value, lest it take the folder of the run for one."""
    found = []
    for now, after in zip(arguments, [*arguments[1:], ""], strict=True):
        takes = re.match(r"\w+\s*=", after) is not None
        found.append(f"{now}={ALONE}" if now == "--forcing" and not takes else now)
    return found


def _forcing_or_all(text: str) -> Any:
    return ALONE if text == ALONE else values.named(values.bounds)(text)


def _run(options: argparse.Namespace) -> None:
    from fedrain.experiment import load
    from fedrain.experiment.report import skill_report
    from fedrain.paper.published import published_column

    run = load(options.run, **{name: getattr(options, name) for name in REFERENCES})
    say_if_unchecked(run)
    every = options.forcing is not None and ALONE in options.forcing
    if every:
        options.forcing = [one for one in options.forcing if one != ALONE] or None
    episode = given(options, EPISODE)
    tables = {"forcing": every, "response": options.response, "split": options.split is not None}
    chosen = [name for name, wanted in tables.items() if wanted]
    if len(chosen) > 1:
        raise InputError(f"choose one of {' and '.join(f'--{name}' for name in chosen)}")
    other = chosen[0] if chosen else None
    if other is not None and episode:
        texts = ", ".join(f"--{name}" for name in episode)
        raise InputError(f"--{other} has episodes of its own: drop {texts}")
    if other is not None:
        {"forcing": _forcing, "response": _response, "split": _split}[other](run, options)
        return
    found = run.evaluate(options.policy, **episode) if episode else run.summary(options.policy)
    if options.json:
        print_json({"run": run.configuration.name, **found})
    elif episode:
        print(_table(run, found))
    else:
        print(skill_report(run, published_column(run.configuration)))


def _table(run: "Run", found: dict[str, Any]) -> str:
    """Skill in another episode, for people: mean over the seeds."""
    from fedrain.climate import Skill, skill_table
    from fedrain.experiment.report import physics_table

    environment, name = run.configuration.make_environment(), found["policy"]
    skill = Skill(tuple(found["bands"]), found["global"])
    lines = [skill_table({name: skill}, environment.judged_fields[0])]
    lines.append(physics_table(environment, {name: found["fields"]}, {name: found["physics"]}))
    lines.append(f"return         {found['return']:.0f}")
    if found["diverged_seeds"]:
        lost = found["diverged_seeds"]
        lines.append(f"diverged: seed{'s' * (len(lost) > 1)} {', '.join(map(str, lost))}")
    return "\n".join(lines)


def _forcing(run: "Run", options: argparse.Namespace) -> None:
    from fedrain.experiment.scenarios import forcing_figure, forcing_table
    from fedrain.plotting import save_figure

    results = run.scenarios(options.policy, say)
    path = run.folder / "forcing.png"
    save_figure(forcing_figure(results, f"{run.configuration.name}, {options.policy} policy"), path)
    if options.json:
        scenarios = {name: forced.as_dict() for name, forced in results.items()}
        print_json({"run": run.configuration.name, "scenarios": scenarios})
    else:
        print(forcing_table(results))
        say(f"figure: {path}")


def _response(run: "Run", options: argparse.Namespace) -> None:
    from fedrain.experiment.response import response_table

    found = run.respond(options.policy, say=say)
    if options.json:
        first = {name: next(iter(by_forcing.values())) for name, by_forcing in found.items()}
        shown = {name: one.as_dict() for name, one in first.items()}
        print_json({"run": run.configuration.name, **shown})
    else:
        print(response_table(found))


def _split(run: "Run", options: argparse.Namespace) -> None:
    from fedrain.experiment.held_out import held_out_table

    found = run.held_out(options.split, options.policy)
    if options.json:
        shown = {"policy": options.policy, "split": options.split}
        print_json({"run": run.configuration.name, **shown, **found})
    else:
        print(held_out_table(run, found, options.split))
