"""Presets, the names in them, and what of them counts where."""

import json
from dataclasses import asdict, replace

import pytest

from fedrain.agents import (
    ALGORITHMS,
    SAC,
    Schedule,
    Transforms,
    load_algorithm,
    make_algorithm,
    preset_names,
    preset_text,
)
from fedrain.agents.presets import hyperparameters_of, modernised
from fedrain.envs import AgentSpec, make
from fedrain.errors import InputError

NAMES = ALGORITHMS.names()
SPECS = {
    "ebm-v1": make("ebm-v1", latitudes=12).spec,
    "ebm-v2": make("ebm-v2", agents=2, latitudes=12).spec,
    "ebm-v3": make("ebm-v3", agents=2, latitudes=12).spec,
    "one agent": make("ebm-v3", agents=1, latitudes=12).spec,
    "only D": make("ebm-v3", agents=2, latitudes=12, learn="D").spec,
    "unknown": AgentSpec(3, (0.0,), (1.0,)),
}


def test_there_are_four_algorithms():
    assert NAMES[:4] == ["ddpg", "td3", "tqc", "sac"]
    assert ALGORITHMS.get("sac") is SAC


@pytest.mark.parametrize("preset", preset_names())
@pytest.mark.parametrize("algorithm", NAMES)
def test_presets_load(preset, algorithm):
    loaded = load_algorithm(algorithm, preset)
    assert type(loaded) is ALGORITHMS.get(algorithm)
    stored = json.loads(json.dumps(hyperparameters_of(loaded)))
    assert make_algorithm(algorithm, stored) == loaded  # as a run stores it and reads it


@pytest.mark.parametrize("preset", preset_names())
@pytest.mark.parametrize("algorithm", NAMES)
@pytest.mark.parametrize("spec", SPECS.values(), ids=list(SPECS))
def test_a_preset_asks_for_nothing_that_cannot_apply(preset, algorithm, spec):
    load_algorithm(algorithm, preset, spec).check(spec)


def test_what_counts_where_its_condition_holds():
    found = {name: load_algorithm("sac", "fedrain", spec) for name, spec in SPECS.items()}
    options = {
        name: (a.transforms.knots, a.transforms.place, a.transforms.team, a.schedule.common_hold)
        for name, a in found.items()
    }
    assert options == {
        "ebm-v1": (24, 9, 0.0, 1),
        "ebm-v2": (24, 9, 0.0, 1),
        "ebm-v3": (24, 9, 0.45, 25),
        "one agent": (24, 9, 0.0, 25),
        "only D": (0, 9, 0.45, 25),
        "unknown": (0, 0, 0.0, 1),
    }
    scaled = {name for name, a in found.items() if a.transforms.scaled_observations}
    assert scaled == set(SPECS) - {"unknown"}
    # What is set by hand is never left out: it is refused where it cannot apply.
    with pytest.raises(InputError, match="team cannot apply"):
        load_algorithm("sac", "fedrain", SPECS["ebm-v2"], {"team": 0.5}).check(SPECS["ebm-v2"])


@pytest.mark.parametrize(
    ("needed", "off", "idle"),
    [
        ("team", 0.0, ("transforms", "reach")),
        ("common_noise", False, ("schedule", "common_hold")),
        ("common_constant", False, ("schedule", "common_rate")),
    ],
)
def test_what_acts_through_another_option_goes_with_it(needed, off, idle):
    """Out of a preset and of what was stored; given by hand, it is refused."""
    spec, (part, name) = SPECS["ebm-v3"], idle
    before = load_algorithm("ddpg", "fedrain", spec)
    without = load_algorithm("ddpg", "fedrain", spec, {needed: off})
    without.check(spec)
    assert getattr(getattr(without, part), name) in (0, 1)
    value = getattr(getattr(before, part), name)
    with pytest.raises(InputError, match=f"{name} cannot apply"):
        load_algorithm("ddpg", "fedrain", spec, {needed: off, name: value}).check(spec)
    stored = hyperparameters_of(without)
    stored[part] = {**stored[part], name: value}  # as it could be before
    assert make_algorithm("ddpg", modernised(stored, spec)) == without
    assert modernised(stored, spec) == hyperparameters_of(without)
    legacy = modernised({**LEGACY, needed: off}, spec)
    assert make_algorithm("ddpg", legacy) == without


def test_corrected_differs_from_paper_in_the_three_quirks_only():
    paper = [load_algorithm(name, "paper") for name in NAMES]
    corrected = [load_algorithm(name, "corrected") for name in NAMES]
    changes = {
        (name, key): (getattr(old, key), getattr(new, key))
        for name, old, new in zip(NAMES, paper, corrected, strict=True)
        for key in old.__dict__
        if getattr(old, key) != getattr(new, key)
    }
    assert changes == {
        ("td3", "clip_target_to_first_component"): (True, False),
        ("tqc", "drop"): (0, 2),
        ("tqc", "evaluate_by_sampling"): (True, False),
    }


# -------------------------------------------------------------------- presets of one's own


def test_a_preset_can_be_copied_and_changed(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(preset_text("paper").replace("width = 256", "width = 32"), encoding="utf-8")
    assert load_algorithm("ddpg", path).width == 32


def test_an_algorithms_own_table_counts_more_than_the_common_one(tmp_path):
    path = tmp_path / "mine.toml"
    text = preset_text("fedrain").replace("[sac]", "[sac]\nwidth = 32\nknots = 6\nteam = 0.1")
    path.write_text(text, encoding="utf-8")
    changed, before = (load_algorithm("sac", p) for p in (path, "fedrain"))
    assert (changed.width, changed.transforms.knots, changed.transforms.team) == (32, 6, 0.1)
    same = replace(before.transforms, knots=6, team=0.1)
    assert replace(changed, width=before.width) == replace(before, transforms=same)
    assert load_algorithm("ddpg", path) == load_algorithm("ddpg", "fedrain")


def test_settings_go_by_their_own_name_or_with_that_of_their_part():
    short = load_algorithm("sac", settings={"updates": 3, "knots": 5, "tau": 0.5})
    full = {"schedule.updates": 3, "transforms": {"knots": 5}, "tau": 0.5}
    assert load_algorithm("sac", settings=full) == short
    assert (short.schedule.updates, short.transforms.knots, short.tau) == (3, 5, 0.5)


@pytest.mark.parametrize(
    ("algorithm", "preset", "settings", "message", "named"),
    [
        ("dppg", "paper", {}, "no algorithm 'dppg': did you mean 'ddpg'", NAMES),
        ("xyz", "paper", {}, "no algorithm 'xyz': use one of", NAMES),
        ("ddpg", "papre", {}, "no preset 'papre': did you mean 'paper'", preset_names()),
        ("ddpg", "none.toml", {}, "none.toml: there is no such file", []),
        ("sac", "paper", {"widht": 3}, "no SAC hyperparameter 'widht': did you mean 'width'", []),
        ("sac", "paper", {"model.width": 3}, "no SAC hyperparameter 'model.width'", ["width"]),
        ("sac", "paper", {"1!": 3}, "no SAC hyperparameter '1!': use one of", ["tau", "knots"]),
        ("sac", "paper", {"quantiles": 3}, "no SAC hyperparameter 'quantiles'", []),
        ("nothing.py:Mine", "paper", {}, "nothing.py: there is no such file", []),
        ("json:loads", "paper", {}, "is not a class that inherits from", ["json:loads"]),
        ("json:JSONDecoder", "paper", {}, "is not a class that inherits from", []),
        ("fedrain.agents:Algorithm", "paper", {}, "Algorithm has no act and no explore", []),
    ],
)
def test_unknown_names(algorithm, preset, settings, message, named):
    with pytest.raises(InputError, match=message) as error:
        load_algorithm(algorithm, preset, settings=settings)
    assert "\n" not in str(error.value)
    assert all(name in str(error.value) for name in named)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("width = 256", "widht = 256"), "hyperparameter 'widht': did you mean 'width'"),
        (("width = 256", ""), "width is missing"),
        (("width = 256", "width = 2.5"), "width must be an integer"),
        (("width = 256", "width = true"), "width must be an integer"),
        (("width = 256", "width = 0"), "width cannot be 0"),
        (("width = 256", 'width = "wide"'), "width must be an integer"),
        (("tau = 0.021580739259456708", "tau = 2.0"), "tau cannot be 2.0"),
        (("tau = 0.021580739259456708", "tau = nan"), "tau cannot be nan"),
        (("tau = 0.021580739259456708", "tau = true"), "tau must be a number"),
        (("[ddpg]", "[ddpg]\nlayer_norm = 1"), "layer_norm must be true or false"),
        (("[ddpg]", "[ddpg]\nreward = 1"), "reward must be text"),
        (("[ddpg]", '[ddpg]\nreward = "cube"'), "reward must be one of square, root, log"),
        (("[ddpg]", "[ddpg]\ndiscount = 1.0\nshaping = 0.1"), "shaping needs a discount below 1"),
        (("[ddpg]", "[ddpg]\nknown_places = 3"), "known_places: is a table"),
        (("[ddpg]", "[ddpg.known_place]\nplace = 3\n[ddpg]"), "hyperparameter 'known_place'"),
        (("[ddpg]", "[dpg]"), r"no table \[ddpg\]"),
        (("[ddpg]", "common = 3\n[ddpg]"), "a table of hyperparameters for each algorithm"),
        (("[ddpg]", "[ddpg"), "not a TOML file"),
    ],
)
def test_bad_presets(tmp_path, change, message):
    path = tmp_path / "mine.toml"
    path.write_text(preset_text("paper").replace(*change, 1), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_algorithm("ddpg", path)


def test_a_quantile_must_be_left(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(preset_text("paper").replace("drop = 0", "drop = 45", 1), encoding="utf-8")
    with pytest.raises(InputError, match="drop must leave a quantile of 45"):
        load_algorithm("tqc", path)


# -------------------------------------------------------------------- as they were stored before

#: Of a run of preset ``fedrain`` before version 0.2: one flat table, whatever the task.
LEGACY = {
    "tau": 0.025, "batch_size": 64, "width": 64, "policy_frequency": 1, "discount": 0.75,
    "observation_scale": 30.0, "unit_actions": True, "knots": 24, "root_reward": False,
    "log_reward": True, "reward_scale": 0.3, "shaping": 0.3, "latitude": 9, "depth": 2,
    "layer_norm": False, "restraint": 0.05, "common_noise": True, "common_hold": 25,
    "common_constant": True, "common_rate": 0.1, "team": 0.45, "reach": 40.0, "final_noise": 0.05,
    "final_rate": 0.1, "proximal": 0.0, "updates": 1, "learning_rate": 0.0034,
    "exploration_noise": 1.0, "critics": 4, "warmup_steps": 1000,
}  # fmt: skip


@pytest.mark.parametrize("spec", SPECS.values(), ids=list(SPECS))
def test_hyperparameters_of_before_are_read(spec):
    """They are the preset's of today, with what could not apply left out as it was then."""
    made = make_algorithm("ddpg", modernised(LEGACY, spec))
    assert made == load_algorithm("ddpg", "fedrain", spec)
    made.check(spec)


def test_rewards_and_scales_of_before():
    off = {"observation_scale": 1.0, "latitude": 0, "root_reward": False, "log_reward": False}
    for changed, transforms in (
        ({}, Transforms()),
        ({"root_reward": True}, Transforms(reward="root")),
        ({"root_reward": True, "log_reward": True}, Transforms(reward="log")),
        ({"observation_scale": 30.0}, Transforms(scaled_observations=True)),
    ):
        values = hyperparameters_of(load_algorithm("td3", "paper"))
        flat = {k: v for k, v in values.items() if k not in ("transforms", "schedule")}
        made = make_algorithm("td3", modernised({**flat, **off, **changed}))
        assert made.transforms == transforms
        assert made.schedule == Schedule()
    with pytest.raises(InputError, match=r"observation_scale 7\.0 is no longer an option"):
        modernised({"observation_scale": 7.0})


def test_what_is_stored_today_is_left_as_it_is():
    values = hyperparameters_of(load_algorithm("sac"))
    assert modernised(values, SPECS["unknown"]) == values
    assert set(values["transforms"]) == set(asdict(Transforms()))
