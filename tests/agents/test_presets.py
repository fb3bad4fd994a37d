import pytest

from fedrain.agents import ALGORITHMS, load_algorithm, preset_names, preset_text
from fedrain.errors import InputError


@pytest.mark.parametrize("preset", preset_names())
@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_presets_load(preset, algorithm):
    assert isinstance(load_algorithm(algorithm, preset), ALGORITHMS[algorithm])


def test_corrected_differs_from_paper_in_the_three_habits_only():
    paper = [load_algorithm(name, "paper") for name in ALGORITHMS]
    corrected = [load_algorithm(name, "corrected") for name in ALGORITHMS]
    assert paper[0] == corrected[0]
    changes = {
        key: (getattr(old, key), getattr(new, key))
        for old, new in zip(paper, corrected, strict=True)
        for key in old.__dict__
        if getattr(old, key) != getattr(new, key)
    }
    assert changes == {
        "clip_target_to_first_component": (True, False),
        "drop": (0, 2),
        "evaluate_by_sampling": (True, False),
    }


def test_a_preset_can_be_copied_and_changed(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(preset_text("paper").replace("width = 256", "width = 32"), encoding="utf-8")
    assert load_algorithm("ddpg", path).width == 32


@pytest.mark.parametrize(
    ("algorithm", "preset", "message"),
    [
        ("dppg", "paper", "no algorithm 'dppg': did you mean 'ddpg'"),
        ("ddpg", "papre", "no preset 'papre': did you mean 'paper'"),
        ("ddpg", "none.toml", "cannot be read"),
    ],
)
def test_unknown_names(algorithm, preset, message):
    with pytest.raises(InputError, match=message):
        load_algorithm(algorithm, preset)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("width = 256", "widht = 256"), "hyperparameter 'widht': did you mean 'width'"),
        (("width = 256", ""), "width is missing"),
        (("width = 256", "width = 2.5"), "width must be a whole number"),
        (("width = 256", "width = 0"), "width cannot be 0"),
        (("width = 256", 'width = "wide"'), "width must be a whole number"),
        (("tau = 0.021580739259456708", "tau = 2.0"), "tau cannot be 2.0"),
        (("tau = 0.021580739259456708", "tau = nan"), "tau cannot be nan"),
        (("[ddpg]", "[ddpg]\ndiscount = 1.0\nshaping = 0.1"), "shaping needs a discount below 1"),
        (("[ddpg]", "[dpg]"), r"no table \[ddpg\]"),
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
