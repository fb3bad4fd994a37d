"""What may come from a stranger, by kind: a file or a message, how it goes wrong, who reads it.

Each kind has the content as it should be, and plays any other content: what comes back is compared,
where the content has a checksum, with what the right one gives. Nothing is trained but the run that
all of it is of.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.proto.recorddict_pb2 import RecordDict as WireRecords
from google.protobuf.message import DecodeError
from safetensors.numpy import save_file

from fedrain.agents import load_algorithm
from fedrain.climate import read_zonal_mean
from fedrain.experiment import configure, load, train
from fedrain.experiment.checkpoint import Checkpoints
from fedrain.experiment.configuration import Named
from fedrain.experiment.integrity import check_configuration
from fedrain.experiment.resolve import from_dict
from fedrain.experiment.results import SKILL, WEIGHTS
from fedrain.experiment.trainer import Trainer
from fedrain.flower import climate_pb2, credentials
from fedrain.flower.climate import Episode, SharedClimate
from fedrain.flower.coupling import ClimateService
from fedrain.flower.internals import identify
from fedrain.flower.messages import (
    ARRAYS,
    LOGGED,
    METRICS,
    claimed_region,
    read_configuration,
    reply_metrics,
    round_config,
    to_arrays,
)
from fedrain.flower.server import Federation, first_payload
from fedrain.flower.strategy import read_reply
from fedrain.io import write_dataset
from fedrain.paper.results import read_result
from fedrain.reading import read_arrays, read_json
from fedrain.tuning import load_space
from tests.experiment.small import SMALL, small_preset
from tests.fuzz.mutations import in_arrays, in_bytes, in_dataset, in_json, in_toml, pick

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Kind:
    """One kind of what a stranger may send.

    ``checked`` says that another content can never give another result; ``share`` is how often it
    is tried, against others.
    """

    right: bytes
    mutate: Callable[[bytes, np.random.Generator], bytes]
    play: Callable[[bytes], Any]
    checked: bool = False
    share: float = 1.0


def make_kinds(folder: Path) -> dict[str, Kind]:
    """Every kind by name; ``folder`` is where their files are."""
    configuration = configure(
        "ebm-v3", preset=small_preset(folder), agents=2, episodes=2, seeds=2, **SMALL
    )
    whole, old = folder / "whole", folder / "old"
    train(configuration, whole, say=lambda _: None, figures=False)
    shutil.copytree(whole, old)
    _without_checksums(old)
    kinds = {}
    for name, mutate in (
        ("configuration.json", in_json),
        ("returns.nc", in_dataset),
        (SKILL, in_dataset),
        (WEIGHTS, in_arrays),
    ):
        for run, checked in ((whole, True), (old, False)):
            read = _policies if name == WEIGHTS else _summary
            called = f"run-{name.partition('.')[0]}{'' if checked else '-old'}"
            play = partial(_in_folder, run, name, read)
            share = (0.25 if mutate is in_dataset else 0.7) * (0.6 if checked else 1.0)
            kinds[called] = Kind((run / name).read_bytes(), mutate, play, checked, share)
    kinds |= _of_checkpoints(configuration, whole, folder) | _of_settings(configuration, folder)
    return kinds | _of_climates(configuration, folder) | _of_federations(configuration, folder)


def _without_checksums(run: Path) -> None:
    arrays, note = read_arrays(run / WEIGHTS)
    note = json.dumps({name: note[name] for name in ("layout", "episodes")})
    save_file(arrays, run / WEIGHTS, metadata={"note": note})


def _put(path: Path, content: bytes) -> None:
    """As a new file: the NetCDF library goes on with one that it could not read to its end."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def _in_folder(run: Path, name: str, read: Callable[[Path], Any], content: bytes) -> Any:
    """What is read of a run in which one file is another."""
    path, right = run / name, (run / name).read_bytes()
    try:
        _put(path, content)
        return read(run)
    finally:
        _put(path, right)


def _summary(run: Path) -> str:
    found = load(run)
    values = read_json(run / "configuration.json")
    from_dict(values)  # another that is valid may take long to make: then this counts
    check_configuration(run, values, {})
    return json.dumps([found.summary("local"), found.summary("global")])


def _policies(run: Path) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(load(run).actors("local"))]


def _of_checkpoints(configuration: Any, whole: Path, folder: Path) -> dict[str, Kind]:
    trainer = Trainer(configuration, configuration.make_environment())
    checkpoint = folder / "checkpoint"
    shutil.copytree(whole / "checkpoint", checkpoint)

    def play(name: str, content: bytes) -> Any:
        path, right = checkpoint / name, (checkpoint / name).read_bytes()
        try:
            _put(path, content)
            fresh = jax.tree.map(jnp.copy, trainer.trainings)  # they are given away
            found = Checkpoints(checkpoint, configuration.lineage).load(fresh)
            assert found is not None
            trainer.check_history(found[0], found[2])
            return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(found)]
        finally:
            _put(path, right)

    names = {path.name.partition("-")[0]: path.name for path in checkpoint.iterdir()}
    # One without a checksum is of before, and may be other: that is all that can be known.
    return {
        f"checkpoint-{kind}": Kind(
            (checkpoint / name).read_bytes(), in_arrays, partial(play, name), share=0.4
        )
        for kind, name in names.items()
    }


def _of_settings(configuration: Any, folder: Path) -> dict[str, Kind]:
    spec = configuration.make_environment().spec
    preset, space = folder / "fuzzed.toml", folder / "space.toml"

    def presets(content: bytes) -> None:
        preset.write_bytes(content)
        for name in ("ddpg", "td3", "tqc", "sac"):
            load_algorithm(name, preset, spec)

    def spaces(content: bytes) -> None:
        space.write_bytes(content)
        load_space("ddpg", space)

    published = ROOT / "fedrain" / "tuning" / "space.toml"
    ours = ROOT / "fedrain" / "agents" / "presets" / "fedrain.toml"
    return {
        "preset": Kind(ours.read_bytes(), in_toml, presets, share=4),
        "space": Kind(published.read_bytes(), in_toml, spaces, share=4),
    }


def _of_climates(configuration: Any, folder: Path) -> dict[str, Kind]:
    import xarray as xr

    environment = configuration.make_environment()
    target, cell = folder / "target.nc", folder / "cell.nc"
    latitude = np.linspace(-88.0, 88.0, 12)
    field = 27 - 40 * np.sin(np.deg2rad(latitude)) ** 2 + np.zeros((3, 4, 12))
    write_dataset(
        target,
        xr.Dataset(
            {"skt": (("time", "lon", "lat"), field, {"units": "degC"})},
            {
                "lat": ("lat", latitude, {"units": "degrees_north"}),
                "lon": ("lon", np.arange(0.0, 360.0, 90.0), {"units": "degrees_east"}),
                "time": ("time", [15.0, 45.0, 74.0], {"units": "days since 2001-01-01"}),
            },
        ),
    )

    def targets(content: bytes) -> None:
        _put(target, content)
        for weighted in (False, True):
            read_zonal_mean(target, weight_months=weighted)

    stored = ROOT / "results" / "paper" / "ebm-v1-ddpg-paper.nc"

    def cells(content: bytes) -> None:
        _put(cell, content)
        read_result(cell, configure("ebm-v1", algo="ddpg", preset="paper", seeds=10))

    journal = folder / "journal"
    climate = SharedClimate(environment, 0.0, lambda _: None, folder=None)
    kept = SharedClimate(environment, 0.0, lambda _: None, folder=_made(journal))
    # Without patience, the climate moves with the first that hands in its parameters.
    kept.begin(0, Episode(0, 0, "f"))
    kept.step(0, Episode(0, 0, "f"), 0, environment.static_actions[0])
    (path,) = journal.glob("seed-*")

    def journals(content: bytes) -> None:
        _put(path, content)
        SharedClimate(environment, 0.0, lambda _: None, folder=journal)

    service = ClimateService(climate, keyed=False)
    episode = climate_pb2.Episode(number=1, seed=0, run="f")
    action = environment.static_actions[0]
    begin = climate_pb2.BeginRequest(region=0, episode=episode)
    step = climate_pb2.StepRequest(region=0, episode=episode, time=0, parameters=action)

    def requests(content: bytes) -> None:
        """Each as it comes from the wire; one that gRPC itself cannot read is not for us."""
        for kind, answer in (
            (climate_pb2.BeginRequest, service.begin),
            (climate_pb2.StepRequest, service.step),
        ):
            try:
                request = kind.FromString(content)
            except DecodeError:
                continue
            _answered(answer, request)

    return {
        "target": Kind(target.read_bytes(), in_dataset, targets),
        "cell": Kind(stored.read_bytes(), in_bytes, cells, share=0.1),
        "journal": Kind(path.read_bytes(), in_arrays, journals, share=2),
        "climate-begin": Kind(begin.SerializeToString(), in_bytes, requests, share=3),
        "climate-step": Kind(step.SerializeToString(), in_bytes, requests, share=3),
    }


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _answered(answer: Callable[[Any, Any], Any], request: Any) -> None:
    from fedrain.flower.coupling import _answer

    class RefusedError(Exception):
        pass

    def abort(*_: Any) -> None:
        raise RefusedError

    try:
        _answer(answer)(request, SimpleNamespace(abort=abort, auth_context=dict))
    except RefusedError:
        return


def _of_federations(configuration: Any, folder: Path) -> dict[str, Kind]:
    identify(1, 1, 1)
    like = first_payload(configuration)
    times = {name: np.ones(2) for name in ("seconds", "core_seconds")}
    history = {name: np.ones((2, 2)) for name in LOGGED} | times
    reply = RecordDict({ARRAYS: to_arrays(like), METRICS: reply_metrics(1, history, 2)})

    def records(content: bytes) -> RecordDict | None:
        """As it comes from the wire; what Flower itself cannot read never comes to us."""
        try:
            return recorddict_from_proto(WireRecords.FromString(content))
        except Exception:
            return None

    def replies(content: bytes) -> None:
        if (found := records(content)) is None:
            return
        message = Message(content=found, message_type="train", dst_node_id=2)
        claimed_region(message)
        said = read_reply(message, like, 2, 1.0)
        assert not isinstance(said, str) or len(said.splitlines()) == 1, said

    def in_reply(content: bytes, rng: np.random.Generator) -> bytes:
        """An array or a number of the reply is another, is missing, or is not what it says."""
        if rng.random() < 0.3:
            return in_bytes(content, rng)
        arrays = {name: Array(array.numpy()) for name, array in reply[ARRAYS].items()}
        numbers = dict(reply[METRICS])
        name, metric = pick(rng, list(arrays)), pick(rng, list(numbers))
        one = arrays[name]
        shape = pick(
            rng, [(), (0,), (2**31 - 1,), one.shape[::-1], (*one.shape, 1), (-1,), one.shape]
        )
        kind = pick(rng, ["float32", "float64", "int8", "object", "V8", "", one.dtype])
        data = in_bytes(one.data, rng) if rng.random() < 0.5 else one.data
        arrays[name] = Array(kind, shape, pick(rng, [one.stype, one.stype, "", "pickle"]), data)
        other = [
            0,
            -1,
            2**62,
            1e308,
            float("nan"),
            [],
            [0.5],
            [1, 2],
            [float("inf")] * 4,
            [7] * 999,
        ]
        numbers[metric] = pick(rng, other)
        if rng.random() < 0.2:
            del arrays[name]
        elif rng.random() < 0.2:
            del numbers[metric]
        records = {ARRAYS: ArrayRecord(arrays), METRICS: MetricRecord(numbers)}
        return wire(RecordDict(records))

    told = RecordDict({"config": round_config(configuration, "f", 0, 2, False)})

    def rounds(content: bytes) -> None:
        if (found := records(content)) is None or "config" not in found.config_records:
            return
        config = found.config_records["config"]
        if "configuration" in config:
            read_configuration(config, Named())

    def in_experiment(content: bytes, rng: np.random.Generator) -> bytes:
        values = in_json(json.dumps(configuration.as_dict()).encode(), rng)
        config = round_config(configuration, "f", 0, 2, False)
        config["configuration"] = values.decode(errors="replace")
        return recorddict_to_proto(RecordDict({"config": config})).SerializeToString()

    federation = Federation(
        configure("ebm-v2", preset=folder / "small.toml", agents=2, episodes=4, **SMALL),
        folder / "federation", False, lambda _: None,
    )  # fmt: skip
    federation.store.save(*_kept(federation))
    path = federation.store.path

    def kept(content: bytes) -> None:
        _put(path, content)
        federation._load()

    def wire(records: RecordDict) -> bytes:
        return recorddict_to_proto(records).SerializeToString()

    made = folder / "keys" / "region-0"
    credentials.make_credentials(folder / "keys", 1)
    public = folder / "keys" / "server" / "nodes" / "region-0.pub"
    server = credentials.Credentials(folder / "keys" / "server")

    def keys(path: Path, content: bytes) -> None:
        _put(path, content)
        if path == public:
            server.public_keys()
        else:
            (_private if path.suffix == ".key" else credentials._read_certificate)(path)

    return {
        "reply": Kind(wire(reply), in_reply, replies, share=6),
        "round": Kind(wire(told), in_bytes, rounds, share=2),
        "experiment": Kind(wire(told), in_experiment, rounds, share=3),
        "server-checkpoint": Kind(path.read_bytes(), in_arrays, kept, share=4),
        **{
            f"key-{one.suffix[1:]}": Kind(one.read_bytes(), in_bytes, partial(keys, one))
            for one in (made / "machine.pem", made / "machine.key", public)
        },
    }


def _private(path: Path) -> None:
    credentials._read_key(path, credentials.serialization.load_pem_private_key)


def _kept(federation: Federation) -> Any:
    """What a federation saves after a round."""
    saved: list[Any] = []
    store, federation.store = (
        federation.store,
        SimpleNamespace(save=lambda *kept: saved.extend(kept)),
    )
    federation.finished = 1
    federation._save()
    federation.store = store
    return saved
