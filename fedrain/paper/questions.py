"""The paper's claims as statements, and the test that decides each.

Claims on skill need only means and spreads, so the same test is put to the published figures and to
ours. Learning curves are not published, so claims on convergence are put to ours alone, by the
logarithm of −return, since the paper draws its curves on a log scale. Nor are costs published: ours
are set beside those of the reference implementation, measured on the same machine.
"""

from fedrain.paper.judgement import (
    SOME,
    Costs,
    CurveQuestion,
    Question,
    above,
    below_half,
    changed,
    comparable,
    compare,
    compare_changes,
    compare_places,
    converge_faster,
    costs_less,
    most_converge,
    most_rise,
    paper_cells,
    static_model,
)
from fedrain.paper.matrix import PRESETS, SCHEMES, Cell, single_agent
from fedrain.paper.results import Bands
from fedrain.paper.statistics import below, more_variable, more_variable_of_the_same

EARLY, LATE = 5_000, 10_000  # steps
POLES, MIDDLE, TROPICS = (0, 5), (1, 4), (2, 3)
ALGORITHMS, ALL_SCHEMES, FEDERATED = tuple(PRESETS), tuple(SCHEMES), ("fed05", "fed10")
VARIANCES = "Brown and Forsythe's test (published figures: F test) of the variances"
SAME_SEEDS = f"{VARIANCES}, paired by seed,"
NEAR = "a tenth, or a fifth, of the gain in log(−return)"
COUNTED = (
    "processor time of each of thirteen cells, counted; in the published way of working, climlab "
    "and PyTorch timed here, that of a step with 16, 48 and 96 latitudes"
)


def _one_agent(algos: tuple[str, ...] = ("ddpg",)) -> list[Cell]:
    return paper_cells(algos, envs=("ebm-v1",), agents=(1,), schemes=("nofed",))


def _federated(algos: tuple[str, ...] = ("ddpg",)) -> list[Cell]:
    return paper_cells(algos, agents=(2, 6), schemes=FEDERATED)


OF_CURVES: tuple[CurveQuestion, ...] = (
    *(
        CurveQuestion(
            f"Training converges faster in ebm-v2 and ebm-v3 than in ebm-v1 ({algo.upper()})",
            f"Mann–Whitney test of the steps after which a seed stays within {NEAR} from where it "
            "ends, two and six agents, fed05 and fed10",
            converge_faster(_federated((algo,)), single_agent),
        )
        for algo in ALGORITHMS
    ),
    CurveQuestion(
        "Most policies are stable by 5 000 steps in ebm-v2 and ebm-v3",
        f"sign test, whether most seeds stay from then on within {NEAR} from where they end, each "
        "algorithm, two and six agents, fed05 and fed10, of which half are enough",
        most_converge(_federated(ALGORITHMS), lambda steps: steps <= EARLY),
        enough=0.5,
    ),
    CurveQuestion(
        "In ebm-v1 training converges after 10 000 steps only",
        f"sign test, whether only later most seeds stay within {NEAR} from where they end, each "
        "algorithm",
        most_converge(_one_agent(ALGORITHMS), lambda steps: steps > LATE),
    ),
    CurveQuestion(
        "Two federated agents converge monotonically (DDPG)",
        f"sign test, whether most seeds never fall back by more than {NEAR}, ebm-v2 and ebm-v3, "
        "fed05 and fed10",
        most_rise(paper_cells(agents=(2,), schemes=FEDERATED)),
    ),
)

OF_COSTS: tuple[Question[Costs], ...] = tuple(
    Question(
        f"DDPG is cheaper to train than {other.upper()}", COUNTED, costs_less(other), tested=False
    )
    for other in ("td3", "tqc")
)


def _ddpg_is_better(algo: str) -> tuple[Question[Bands], ...]:
    name = algo.upper()
    change = "Welch's test of the four means together, each band"
    return (
        Question(
            f"Federated DDPG has lower errors than federated {name}",
            "Welch's test, each band of ebm-v2 and ebm-v3, two and six agents, fed05 and fed10",
            compare(below, _federated(), changed(algo=algo)),
        ),
        Question(
            f"DDPG loses less than {name} from ebm-v1 to ebm-v2 and ebm-v3, in K (six agents)",
            f"{change} of ebm-v2 and ebm-v3, fed05 and fed10",
            compare_changes(
                paper_cells(schemes=FEDERATED),
                {"env": "ebm-v1", "agents": 1, "scheme": "nofed"},
                {"algo": algo},
            ),
        ),
        Question(
            f"DDPG loses less than {name} from ebm-v2 to ebm-v3, in K (six agents)",
            f"{change}, fed05 and fed10",
            compare_changes(
                paper_cells(envs=("ebm-v3",), schemes=FEDERATED), {"env": "ebm-v2"}, {"algo": algo}
            ),
        ),
    )


def _varies_more(algo: str) -> tuple[Question[Bands], ...]:
    varies = f"{algo.upper()} varies more from seed to seed"
    return (
        Question(
            f"{varies} than DDPG",
            f"{VARIANCES}, each band of the twelve cells of ebm-v2 and ebm-v3",
            compare(
                more_variable,
                paper_cells((algo,), agents=(2, 6), schemes=ALL_SCHEMES),
                changed(algo="ddpg"),
            ),
        ),
        Question(
            f"{varies} under fed05 than under fed10 (six agents)",
            f"{VARIANCES}, each band of ebm-v2 and ebm-v3",
            compare(more_variable, paper_cells((algo,)), changed(scheme="fed10")),
        ),
        Question(
            f"{varies} in ebm-v3 than in ebm-v2 (six agents)",
            f"{VARIANCES}, each band and scheme",
            compare(
                more_variable,
                paper_cells((algo,), ("ebm-v3",), schemes=ALL_SCHEMES),
                changed(env="ebm-v2"),
            ),
        ),
        Question(
            f"{varies} in the tropics and at the poles than between them (six agents)",
            f"{SAME_SEEDS} of four bands against those of the mid-latitudes together, each scheme "
            "of ebm-v2 and ebm-v3",
            compare_places(
                more_variable_of_the_same,
                paper_cells((algo,), schemes=ALL_SCHEMES),
                (*POLES, *TROPICS),
                MIDDLE,
            ),
        ),
    )


def _varies_most_at_the_poles(algo: str) -> Question[Bands]:
    return Question(
        f"{algo.upper()} varies more from seed to seed at the poles than elsewhere "
        "(ebm-v2, six agents)",
        f"{SAME_SEEDS} of both polar bands against those of the four others together, each scheme",
        compare_places(
            more_variable_of_the_same,
            paper_cells((algo,), ("ebm-v2",), schemes=ALL_SCHEMES),
            POLES,
            (*MIDDLE, *TROPICS),
        ),
    )


OF_BANDS: tuple[Question[Bands], ...] = (
    Question(
        "One agent has a lower error than the static model (DDPG in ebm-v1)",
        "Student's test against the static model's error, each band",
        compare(below, _one_agent(), static_model),
    ),
    Question(
        "fed05 has a lower error than the static model in nearly all bands (DDPG, six agents)",
        "Student's test against the static model's error, each band of ebm-v2 and ebm-v3",
        compare(below, paper_cells(), static_model),
    ),
    Question(
        "fed05 has a lower error than nofed in nearly all bands (DDPG, six agents)",
        "Welch's test, each band of ebm-v2 and ebm-v3",
        compare(below, paper_cells(), changed(scheme="nofed")),
    ),
    Question(
        "fed05 has a lower error than one agent in tropics and mid-latitudes (DDPG, six agents)",
        "Welch's test against ebm-v1, four bands of ebm-v2 and ebm-v3",
        compare(below, paper_cells(), single_agent, (*MIDDLE, *TROPICS)),
    ),
    Question(
        "fed05 halves the error in the tropics: that of one agent (DDPG, six agents)",
        "Welch's test against half the error of ebm-v1, two bands of ebm-v2 and ebm-v3",
        compare(below_half, paper_cells(), single_agent, TROPICS),
    ),
    Question(
        "fed05 halves the error in the tropics: that of the static model (DDPG, six agents)",
        "Student's test against half the static error, two bands of ebm-v2 and ebm-v3",
        compare(below_half, paper_cells(), static_model, TROPICS),
    ),
    Question(
        "fed05 halves the error in the tropics: that of nofed (DDPG, six agents)",
        "Welch's test against half the error of nofed, two bands of ebm-v2 and ebm-v3",
        compare(below_half, paper_cells(), changed(scheme="nofed"), TROPICS),
    ),
    Question(
        "What fed05 gains on nofed, in per cent, is more in ebm-v3 than in ebm-v2 "
        "(DDPG, six agents)",
        "Welch's test of the logarithms of the four means together, each band",
        compare_changes(
            paper_cells(envs=("ebm-v3",)), {"scheme": "nofed"}, {"env": "ebm-v2"}, relative=True
        ),
    ),
    Question(
        "What fed05 gains on one agent, or on the static model, is more in ebm-v3 than in ebm-v2 "
        "(DDPG, six agents)",
        "Welch's test of the errors in ebm-v3 and ebm-v2, each band",
        compare(below, paper_cells(envs=("ebm-v3",)), changed(env="ebm-v2")),
    ),
    Question(
        "fed05 varies less from seed to seed than nofed (DDPG, six agents)",
        f"{VARIANCES}, each band of ebm-v2 and ebm-v3",
        compare(more_variable, paper_cells(schemes=("nofed",)), changed(scheme="fed05")),
    ),
    Question(
        "fed10 still has a lower error than nofed (DDPG, six agents)",
        "Welch's test, each band of ebm-v2 and ebm-v3",
        compare(below, paper_cells(schemes=("fed10",)), changed(scheme="nofed")),
    ),
    Question(
        "fed10 varies more from seed to seed than fed05 (DDPG, six agents)",
        f"{VARIANCES}, each band of ebm-v2 and ebm-v3",
        compare(more_variable, paper_cells(schemes=("fed10",)), changed(scheme="fed05")),
    ),
    Question(
        "At the poles federated agents are comparable to one agent, or better (DDPG, six agents)",
        "Welch's test against 1.1 times the error of ebm-v1, two bands, fed05 and fed10",
        compare(comparable, paper_cells(schemes=FEDERATED), single_agent, POLES),
    ),
    Question(
        "Two federated agents still reach low errors (DDPG)",
        "Student's test against the static model's error, fed05 and fed10, each band",
        compare(below, paper_cells(agents=(2,), schemes=FEDERATED), static_model),
    ),
    Question(
        "DDPG has a lower error than the static model, whatever the decomposition and the scheme",
        "Student's test against the static model's error, each band of the twelve cells of ebm-v2 "
        "and ebm-v3",
        compare(below, paper_cells(agents=(2, 6), schemes=ALL_SCHEMES), static_model),
    ),
    Question(
        "Federated DDPG has a lower error than one agent in tropics and mid-latitudes, whatever "
        "the decomposition",
        "Welch's test against ebm-v1, four bands, two and six agents, fed05 and fed10",
        compare(below, _federated(), single_agent, (*MIDDLE, *TROPICS)),
    ),
    *_ddpg_is_better("td3"),
    *_ddpg_is_better("tqc"),
    *_varies_more("td3"),
    *_varies_more("tqc"),
    Question(
        "TD3 under fed05 in ebm-v2 often matches one agent in tropics and mid-latitudes "
        "(six agents)",
        "Welch's test against 1.1 times the error of ebm-v1, four bands, of which half are enough",
        compare(comparable, paper_cells(("td3",), ("ebm-v2",)), single_agent, (*MIDDLE, *TROPICS)),
        enough=0.5,
    ),
    _varies_most_at_the_poles("td3"),
    Question(
        "TD3 varies more from seed to seed at the South Pole than at the North Pole "
        "(ebm-v2, six agents)",
        f"{SAME_SEEDS} of the two polar bands, each scheme",
        compare_places(
            more_variable_of_the_same,
            paper_cells(("td3",), ("ebm-v2",), schemes=ALL_SCHEMES),
            POLES[:1],
            POLES[1:],
        ),
    ),
    Question(
        "TD3 has higher errors at the poles in ebm-v3 than in ebm-v2 (six agents)",
        "Welch's test, two bands, each scheme",
        compare(
            above,
            paper_cells(("td3",), ("ebm-v3",), schemes=ALL_SCHEMES),
            changed(env="ebm-v2"),
            POLES,
        ),
    ),
    Question(
        "fed05 is the steadiest scheme of TD3 in ebm-v3 (six agents)",
        f"{VARIANCES} of fed10 and nofed against fed05's, each band",
        compare(
            more_variable,
            paper_cells(("td3",), ("ebm-v3",), schemes=("fed10", "nofed")),
            changed(scheme="fed05"),
        ),
    ),
    Question(
        "TQC under fed05 in ebm-v2 has a lower error than one agent in the tropics (six agents)",
        "Welch's test against ebm-v1, two bands",
        compare(below, paper_cells(("tqc",), ("ebm-v2",)), single_agent, TROPICS),
    ),
    _varies_most_at_the_poles("tqc"),
    Question(
        "fed10 varies more from seed to seed than fed05 (TQC in ebm-v2, six agents)",
        f"{VARIANCES}, each band",
        compare(
            more_variable,
            paper_cells(("tqc",), ("ebm-v2",), schemes=("fed10",)),
            changed(scheme="fed05"),
        ),
    ),
    Question(
        "TQC has higher errors in the mid-latitudes in ebm-v3 than in ebm-v2 (six agents)",
        "Welch's test, two bands, each scheme",
        compare(
            above,
            paper_cells(("tqc",), ("ebm-v3",), schemes=ALL_SCHEMES),
            changed(env="ebm-v2"),
            MIDDLE,
        ),
    ),
    Question(
        "TQC in ebm-v3 has in several cases higher errors at the poles than one agent (six agents)",
        "Welch's test against ebm-v1, two bands, each scheme, of which a third is enough",
        compare(
            above, paper_cells(("tqc",), ("ebm-v3",), schemes=ALL_SCHEMES), single_agent, POLES
        ),
        enough=SOME,
    ),
)
