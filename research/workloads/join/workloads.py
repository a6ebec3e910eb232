"""The synthetic join workloads of the paper in the file contract."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from research.workloads.draws import rows_for
from research.workloads.join.binary import BinaryCase, BinaryScene
from research.workloads.join.multi import SIGNATURES, GeneralCase, Images, R, S, StarCase, T, TableSteps, U
from research.workloads.join.tables import BINARY, GENERAL, STAR, JoinSchema, change_lines, filled, workload_of
from tidings.model.change import Op
from tidings.workloads.workload import Generator, WorkloadLines

PAYLOAD = BinaryCase(r_size=500, payload=1_000)
"""As in the paper's experiments with payload: with few R rows, S rows are sent and dropped often."""


def binary(
    case: BinaryCase,
    *,
    seed: int = 0,
    rows: int = 0,
    subscriptions: int = 100_000,
    changes: int = 100_000,
) -> WorkloadLines:
    """`rows` rows of r (default: those of the case, if there are enough changes), and rows of s in proportion."""
    # If most of the first changes insert rows of s, fewer are left for r.
    case = case.sized(rows or rows_for(changes // (5 if case.s_size > case.r_size else 1), case.r_size))
    scene = case.scene(seed=seed, subscriptions=subscriptions, changes=changes)
    tables, steps = _images_of(scene)
    lines = change_lines(BINARY, tables, (case.payload,) * 2, [filled(tables, (1, 0)), steps], changes)
    return workload_of(BINARY, [(0, 1)] * scene.size, scene.ranges, lines)


def _images_of(scene: BinaryScene) -> tuple[Sequence[Images], TableSteps]:
    r = Images(np.arange(len(scene.r_b)), scene.r_b[:, None], scene.r_a, scene.r_size)
    s = Images(np.arange(len(scene.s_b)), scene.s_b[:, None], scene.s_c, len(scene.s_b))
    op = np.where(scene.is_insert, Op.INSERT, Op.DELETE).astype(np.int64)
    return (r, s), TableSteps(np.zeros(scene.changes, np.int64), op, scene.changed)


def _multi(
    schema: JoinSchema,
    case: GeneralCase | StarCase,
    *,
    seed: int = 0,
    rows: int = 0,
    subscriptions: int = 100_000,
    changes: int = 100_000,
) -> WorkloadLines:
    """`rows` rows of the largest table (default: those of the case, if there are enough changes), fewer of the others."""
    case = case.sized(rows or rows_for(changes, case.rows_max))
    scene = case.scene(seed=seed, subscriptions=subscriptions, changes=changes)
    joined = [SIGNATURES[number] for number in scene.signature.tolist()]
    first = filled(scene.tables, (R, T, U, S))
    lines = change_lines(schema, scene.tables, scene.payloads, [first, scene.steps], changes)
    return workload_of(schema, joined, scene.ranges, lines)


join_binary: Generator = partial(binary, BinaryCase())
join_payload: Generator = partial(binary, PAYLOAD)
join_multi: Generator = partial(_multi, GENERAL, GeneralCase())
join_star: Generator = partial(_multi, STAR, StarCase())
