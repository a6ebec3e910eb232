"""The synthetic join workloads of the paper in the file contract."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidings.model.change import Op
from tidings.workloads.join_cases import BinaryCase
from tidings.workloads.join_multi_cases import GeneralCase, StarCase
from tidings.workloads.join_multi_scene import SIGNATURES, Images, MultiScene, R, S, Steps, T, U
from tidings.workloads.join_scene import BinaryScene
from tidings.workloads.join_tables import BINARY, GENERAL, STAR, JoinSchema, change_lines, filled, workload_of
from tidings.workloads.topk_table import rows_for
from tidings.workloads.workload import Workload

PAYLOAD = BinaryCase(r_size=500, payload=1_000)
"""As in the paper's experiments with payload: with few R rows, S rows come and go often."""


def join_binary(*, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000) -> Workload:
    """`rows` of r, 16,000 where there are changes enough, and a third as many of s."""
    case = BinaryCase()
    return _binary(case.sized(rows or rows_for(changes, case.r_size)), seed, subscriptions, changes)


def join_payload(*, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000) -> Workload:
    """`rows` of r, 500 where there are changes enough, and ten times as many of s, all with a kilobyte of text."""
    case = PAYLOAD
    # Most of the first changes bring rows of s.
    few = rows_for(changes // 5, case.r_size)
    return _binary(case.sized(rows or few), seed, subscriptions, changes)


def join_multi(*, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000) -> Workload:
    """`rows` of s and of t, 7,000 where there are changes enough, and fewer of r and u."""
    case = GeneralCase()
    case = case.sized(rows or rows_for(changes, case.join_values * max(case.per_value)))
    scene = case.scene(seed=seed, subscriptions=subscriptions, changes=changes)
    return _multi(GENERAL, scene, changes)


def join_star(*, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000) -> Workload:
    """`rows` facts, 25,000 where there are changes enough, and a row of each dimension for every 25 of them."""
    case = StarCase()
    case = case.sized(rows or rows_for(changes, case.facts))
    return _multi(STAR, case.scene(seed=seed, subscriptions=subscriptions, changes=changes), changes)


def _binary(case: BinaryCase, seed: int, subscriptions: int, changes: int) -> Workload:
    scene = case.scene(seed=seed, subscriptions=subscriptions, changes=changes)
    tables, steps = _images_of(scene)
    lines = change_lines(BINARY, tables, (case.payload,) * 2, [filled(tables, (1, 0)), steps], changes)
    return workload_of(BINARY, [(0, 1)] * scene.size, scene.ranges, lines)


def _images_of(scene: BinaryScene) -> tuple[Sequence[Images], Steps]:
    r = Images(np.arange(len(scene.r_b)), scene.r_b[:, None], scene.r_a, scene.r_size)
    s = Images(np.arange(len(scene.s_b)), scene.s_b[:, None], scene.s_c, len(scene.s_b))
    op = np.where(scene.is_insert, Op.INSERT, Op.DELETE).astype(np.int64)
    return (r, s), Steps(np.zeros(scene.changes, np.int64), op, scene.changed)


def _multi(schema: JoinSchema, scene: MultiScene, changes: int) -> Workload:
    joined = [SIGNATURES[number] for number in scene.signature.tolist()]
    first = filled(scene.tables, (R, T, U, S))
    lines = change_lines(schema, scene.tables, scene.payloads, [first, scene.steps], changes)
    return workload_of(schema, joined, scene.ranges, lines)
