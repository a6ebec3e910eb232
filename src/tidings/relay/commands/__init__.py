"""The commands of relay, one a file: `tidings plan` and `tidings relay run`."""

from enum import StrEnum


class EngineName(StrEnum):
    inline = "inline"
    spark = "spark"
