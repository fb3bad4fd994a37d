"""Nodes that are slow, faulty or hostile: ``python -m tests.flower.faulty_nodes KIND …``."""

import argparse
import io
import sys
import time
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Message, RecordDict

from fedrain.flower import internals
from fedrain.flower.credentials import Credentials
from fedrain.flower.messages import ARRAYS, METRICS
from fedrain.flower.node import Resident, run_node


def scaled(factor):
    def change(reply, message):
        arrays = reply.content.array_records[ARRAYS]
        changed = {n: Array(np.float32(factor) * a.numpy()) for n, a in arrays.items()}
        return replaced(changed, reply, message)

    return change


def cut_short(reply, message):
    arrays = reply.content.array_records[ARRAYS]
    return replaced({n: Array(a.numpy()[..., :-1]) for n, a in arrays.items()}, reply, message)


def raw(data):
    """Bytes that are not what they say."""

    def change(reply, message):
        arrays = reply.content.array_records[ARRAYS]
        changed = {n: Array(a.dtype, a.shape, a.stype, data) for n, a in arrays.items()}
        return replaced(changed, reply, message)

    return change


def header(shape):
    """The first bytes of an array of that shape, without the numbers."""
    file = io.BytesIO()
    form = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, form)
    return file.getvalue()


def zipped():
    file = io.BytesIO()
    np.savez(file, np.zeros(3))
    return file.getvalue()


def one_more(reply, message):
    """An array that nobody asked for."""
    arrays = {**reply.content.array_records[ARRAYS], "more": Array(np.zeros(3))}
    return replaced(arrays, reply, message)


def heavy(reply, message):
    """A weight of its own making, and numbers that nobody asked for."""
    reply.content.metric_records[METRICS]["num-examples"] = 1e12
    reply.content.metric_records[METRICS]["more"] = 1.0
    return reply


def one_seed(reply, message):
    """The last seed has diverged."""

    def diverged(array):
        values = array.numpy().copy()
        values[-1] = np.nan
        return Array(values)

    arrays = reply.content.array_records[ARRAYS]
    return replaced({n: diverged(a) for n, a in arrays.items()}, reply, message)


def replaced(arrays, reply, message):
    metrics = reply.content.metric_records[METRICS]
    content = RecordDict({ARRAYS: ArrayRecord(arrays), METRICS: metrics})
    return Message(content=content, reply_to=message)


def of_another_region(reply, message):
    reply.content.metric_records[METRICS]["region"] = 0
    return reply


def empty(reply, message):
    return Message(content=RecordDict(), reply_to=message)


CHANGES = {
    "nan": scaled(np.nan),
    "huge": scaled(1e6),
    "shapes": cut_short,
    "other": of_another_region,
    "empty": empty,
    "nothing": raw(b""),
    "no zip": raw(b"PK\x03\x04"),
    "zip": raw(zipped()),
    "vast": raw(header((2**60,))),
    "more": one_more,
    "heavy": heavy,
    "one seed": one_seed,
}


def spoil(region, change):
    """A client app whose replies of one region are changed after the first round."""

    def wrap(app):
        rounds = []

        def client(message, context):
            reply = app(message, context)
            if message.metadata.message_type == "train" and context.node_config["region"] == region:
                rounds.append(1)
                if len(rounds) > 1:
                    return change(reply, message)
            return reply

        return client

    return wrap


def slow(app):
    """From the second round on it takes its time."""
    rounds = []

    def client(message, context):
        if message.metadata.message_type == "train":
            rounds.append(1)
            if len(rounds) > 1:
                print("at work", file=sys.stderr, flush=True)
                time.sleep(30.0)
        return app(message, context)

    return client


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    for name in ("region", "server", "folder", "credentials", "climate"):
        parser.add_argument(f"--{name}")
    options = parser.parse_args()
    region = int(options.region)
    wrap = slow
    if options.kind in CHANGES:
        wrap = spoil(region, CHANGES[options.kind])
    elif options.kind == "twice":
        wrap = None
        plain = internals.push_message

        def twice(client, reply, context):
            plain(client, reply, context)
            plain(client, reply, context)
            print("sent twice", file=sys.stderr, flush=True)

        internals.push_message = twice
    folder = Path(options.folder)
    credentials = Credentials(Path(options.credentials))
    resident = Resident(region, folder, options.climate, credentials, print)
    run_node(resident, options.server, wrap)


if __name__ == "__main__":
    main()
