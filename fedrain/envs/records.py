"""The records of a truth that tasks start from and are judged by, in place of one that runs beside.

A truth that costs as much as the model would double the price of every day. Its states on a few
hundred days, kept once, serve all seeds and all agents.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from fedrain.climate import EarthCirculationModel, GeneralCirculationModel
from fedrain.envs.episode import Record
from fedrain.errors import InputError

#: Days from the climate of the default parameters to that of the truth's; and those that are kept:
#: for training, between the two, and for tests.
ADJUST, TRAINING, BETWEEN, TEST = 120, 300, 20, 80


def gcm_twin_record(model: Any, length: int) -> Record:
    """The truth of ``gcm-twin``: the same model with the parameters of ``twin_truth``."""
    from fedrain.climate.models.gcm_parameters import twin_truth
    from fedrain.climate.models.gcm_store import recorded

    if not isinstance(model, GeneralCirculationModel) or model.is_dry:
        raise InputError("gcm-twin: its truth is a GeneralCirculationModel with moist physics")
    if length > TEST:
        raise InputError(f"gcm-twin: an episode has at most {TEST} steps, as its tests have")
    # Of what agents may be given in other bounds, and other defaults, the truth knows nothing.
    own = GeneralCirculationModel(surface=model.surface).table
    parameters = twin_truth(model.columns)
    truth = replace(model, table=own.replace(static=parameters))
    record = split(recorded(truth, ADJUST, TRAINING + BETWEEN + TEST), length)
    return record._replace(parameters={k: jnp.asarray(v) for k, v in parameters.items()})


#: Steps between the states of the year that episodes of ``gcm-ncep`` start from.
EVERY, YEAR = 5, 73


def gcm_ncep_record(model: Any, length: int) -> Record:
    """States of the default parameters through two years: to start from, not to be judged by."""
    from fedrain.climate.models.gcm_store import recorded

    del length
    if not isinstance(model, EarthCirculationModel):
        raise InputError("gcm-ncep: its model is an EarthCirculationModel")
    own = replace(model, table=EarthCirculationModel().table)
    states = recorded(own, 0, 2 * YEAR, EVERY)
    return Record(
        states=jax.tree.map(jnp.asarray, states),
        training=jnp.array([0, YEAR], jnp.int32),
        test=jnp.array([YEAR, 2 * YEAR], jnp.int32),
    )


def split(states: Any, length: int, training: int = TRAINING, between: int = BETWEEN) -> Record:
    """The record of these states; episodes of training and of tests never share a day."""
    days = len(jax.tree.leaves(states)[0])
    return Record(
        states=jax.tree.map(jnp.asarray, states),
        training=jnp.array([0, training - length], jnp.int32),
        test=jnp.array([training + between, days - length], jnp.int32),
    )
