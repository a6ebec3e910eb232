"""Machines in nine cities: how far apart they are, how fast they send, and how many things they do at once.

The published deployment had 300 machines in nine cities of France and Luxembourg, with 2 to 16 cores; how fast they were
connected is not published. Here the way between two cities takes the time of light in fibre over a route half as long again as
the straight line, and every message a little longer by chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.kernels.arrays import F64, I64

CITIES = {
    "Bordeaux": (44.84, -0.58),
    "Grenoble": (45.19, 5.72),
    "Lille": (50.63, 3.06),
    "Luxembourg": (49.61, 6.13),
    "Lyon": (45.76, 4.84),
    "Nancy": (48.69, 6.18),
    "Nice": (43.70, 7.27),
    "Rennes": (48.11, -1.68),
    "Toulouse": (43.60, 1.44),
}
"""Latitude and longitude, in degrees, about."""
_KM_PER_DEGREE = 111.2
_FIBRE_KM_PER_S = 200_000.0
_DETOUR = 1.5
_CORES = (2, 4, 8, 16)


@dataclass(frozen=True, eq=False)
class Machines:
    """delay_s: float64[machines, machines], one way. bytes_per_s: what a machine can send. cores: computations at a time.

    The last machine is the publisher's, in Lyon. jitter_s: mean of what a message takes longer by chance. message_s: time in
    which a machine sends nothing else, for each message.
    """

    delay_s: F64
    bytes_per_s: F64
    cores: I64
    jitter_s: float
    message_s: float

    @property
    def publisher(self) -> int:
        return len(self.cores) - 1


def draw_machines(
    seed: int, count: int, *, mbit: tuple[float, float], switch_ms: float, jitter_ms: float, message_ms: float
) -> Machines:
    """mbit: range of what machines can send, in Mbit/s. switch_ms: of any way, however short."""
    rng = np.random.default_rng([seed, 6])
    places = np.array(list(CITIES.values()))
    city = np.append(np.arange(count) % len(places), list(CITIES).index("Lyon"))
    at = places[city]
    north = at[:, None, 0] - at[None, :, 0]
    middle = np.radians((at[:, None, 0] + at[None, :, 0]) / 2)
    east = (at[:, None, 1] - at[None, :, 1]) * np.cos(middle)
    km = _KM_PER_DEGREE * np.hypot(north, east)
    low, high = np.log(mbit[0]), np.log(mbit[1])
    return Machines(
        switch_ms / 1e3 + _DETOUR * km / _FIBRE_KM_PER_S,
        np.exp(rng.uniform(low, high, count + 1)) * 1e6 / 8,
        rng.choice(_CORES, count + 1),
        jitter_ms / 1e3,
        message_ms / 1e3,
    )
