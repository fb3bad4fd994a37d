"""The help of every command: complete, readable on any terminal, and its examples run."""

import argparse
import inspect
import re
import shlex
import shutil
from argparse import SUPPRESS
from pathlib import Path

import pytest

from fedrain import baselines
from fedrain.cli import GROUPS, _parser, main
from fedrain.cli.messages import ANYWHERE
from fedrain.experiment import configure
from tests.conftest import leave_out_figures
from tests.experiment.small import small_preset

ROOT = Path(__file__).parent.parent


def all_parsers(parser):
    """A parser and those of its commands, by what is typed."""
    found = {parser.prog: parser}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                found |= all_parsers(child)
    return found


PARSERS = all_parsers(_parser())


def options_of(parser):
    return [a for a in parser._actions if a.option_strings and a.help != SUPPRESS]


@pytest.mark.parametrize("command", PARSERS)
def test_help_says_what_the_command_does_and_shows_examples(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    parser = PARSERS[command]
    with pytest.raises(SystemExit) as ended:
        main([*command.split()[1:], "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert len(parser.description) > 20
    assert parser.examples
    for text, example in parser.examples.items():
        assert text in shown
        assert f"\n    {example}\n" in f"{shown}\n"
        assert example.startswith("fedrain " if command == "fedrain" else command)
    for action in options_of(parser):
        assert action.help, action.option_strings
        assert not action.help.endswith("."), action.help
    assert [line for line in shown.splitlines() if len(line) > 80] == []
    plain = shown.encode("ascii", ANYWHERE).decode()
    assert "\\u" not in plain


def test_commands_are_grouped():
    (commands,) = (a for a in _parser()._actions if isinstance(a, argparse._SubParsersAction))
    text = _parser().format_help()
    assert all(f"\n{title}:\n" in text for title in GROUPS)
    assert all(re.search(rf"^  {name} +\w", text, re.MULTILINE) for name in commands.choices)


def default_shown(action):
    told = re.search(r"\(default: ([^)]*)\)", action.help)
    return told and told[1]


@pytest.mark.parametrize("command", PARSERS)
def test_help_tells_every_default(command):
    """Of what takes a value: what is used where it is left out, as the code has it."""
    of_experiments = inspect.signature(configure).parameters
    for action in options_of(PARSERS[command]):
        if action.nargs == 0 or action.required:
            continue
        shown = default_shown(action)
        if shown is None:
            needs_none = (
                "may be repeated" in action.help or "not part of the package" in action.help
            )
            assert needs_none, action.option_strings
            continue
        kind = command.removeprefix("fedrain baseline ")
        of_baseline = kind != command and inspect.signature(getattr(baselines, kind)).parameters
        default = action.default
        if of_baseline and action.dest in of_baseline and action.dest != "diffusivity":
            default = of_baseline[action.dest].default
        elif default is None and action.dest in ("algo", "preset", "seeds", "episodes", "sharing"):
            default = of_experiments[action.dest].default
        if isinstance(default, int | float):
            assert re.search(rf"(^|\D){default:g}(\D|$)", shown), action.option_strings
        elif isinstance(default, str):
            assert default in shown, action.option_strings


#: What makes the example of a command quick, for what it does is the same.
EPISODES = "--latitudes 12 --episode-length 10 --preset small.toml"
QUICK = {
    "fedrain train": f"{EPISODES} --episodes 1 --seeds 1",
    "fedrain tune": f"{EPISODES} --episodes 1 --trials 1",
    "fedrain federate": f"{EPISODES} --episodes 1",
    "fedrain baseline": "--latitudes 12 --episode-length 10",
    "fedrain baseline limit": "--iterations 2",
    "fedrain baseline constant": "--iterations 2",
    "fedrain baseline enki": "--ensemble 5 --iterations 1",
    "fedrain stability": "--latitudes 12 --width 20",
    "fedrain stability hysteresis": "--step 50",
}


def quick(example):
    words = shlex.split(example)
    command, more = " ".join(words[:2]), ""
    if words[2:3] != ["certificates"] and "--help" not in words:
        more = f"{QUICK.get(command, '')} {QUICK.get(' '.join(words[:3]), '')}"
    if "--model" in words:  # which has latitudes of its own
        more = more.replace("--latitudes 12", "")
    return [*words[1:], *more.split()]


ALONE = ("federate server", "federate node", "federate climate", "gcm", "watch")
FIRST = "fedrain train --out runs/six-agents"
#: What takes a second or two; the others are slow.
CHEAP = (
    "fedrain envs", "fedrain train --help", "fedrain evaluate runs/six-agents",
    "fedrain evaluate runs/six-agents --policy global --json", "fedrain baseline static",
    "fedrain baseline random --seed 3 --figure random.png",
    "fedrain stability equilibria", "fedrain stability equilibria --solar 1300",
    "fedrain federate certificates keys --regions 2 --address 192.0.2.7",
    "fedrain benchmark status --only '*-v3-*'",
)  # fmt: skip
EXAMPLES = [
    pytest.param(example, marks=() if example in CHEAP else pytest.mark.slow)
    for example in dict.fromkeys(e for p in PARSERS.values() for e in p.examples.values())
    if not example.startswith(tuple(f"fedrain {name}" for name in ALONE)) and example != FIRST
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder in which a reader has trained the run that examples tell of."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "examples").symlink_to(ROOT / "examples")
    shutil.copytree(ROOT / "results" / "paper", folder / "results" / "paper")
    small_preset(folder)
    (folder / "space.toml").write_text("[ddpg]\ntau = { low = 0.01, high = 0.1, log = true }\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        leave_out_figures(patch)
        assert main(quick(FIRST)) == 0
    return folder


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(example, place, monkeypatch):
    monkeypatch.chdir(place)
    try:
        status = main(quick(example))
    except SystemExit as ended:  # of --help
        status = ended.code
    assert status == 0


@pytest.mark.slow
def test_the_roles_of_a_federation_work_as_in_their_examples(place, monkeypatch):
    """Server, both nodes and a climate, each by its example, with ports that are free."""
    pytest.importorskip("flwr")
    from fedrain.flower.programs import free_port
    from tests.flower.machines import Machine

    monkeypatch.chdir(place)
    address, where = (f"127.0.0.1:{free_port()}" for _ in range(2))

    def start(role, *more):
        (example,) = PARSERS[f"fedrain federate {role}"].examples.values()
        words = shlex.split(example)[1:]
        return Machine(place, "-".join([role, *more[1:2]]), ["-m", "fedrain", *words, *more])

    climate = start("climate", "--listen", where)
    climate.wait_for("the climate of 2 agents")
    climate.kill()
    small = ["--out", "runs/roles", *EPISODES.split(), "--episodes", "1"]
    server = start("server", "--listen", address, *small)
    nodes = [start("node", "--region", str(i), "--server", address) for i in range(2)]
    try:
        server.finish()
    finally:
        for node in nodes:
            node.kill()
    assert (place / "runs" / "roles" / "skill.nc").exists()


@pytest.mark.slow
def test_the_spin_up_of_a_general_circulation_model_starts_as_in_its_example(place, monkeypatch):
    """As far as the model that it names: the days themselves take hours."""
    pytest.importorskip("jcm")
    (example,) = PARSERS["fedrain gcm spin-up"].examples.values()
    monkeypatch.chdir(place)
    started = []

    def make(name, **options):
        started.append(name)
        raise KeyboardInterrupt

    monkeypatch.setattr("fedrain.envs.make", make)
    assert main(shlex.split(example)[1:]) == 1
    assert started == ["gcm-twin"]
