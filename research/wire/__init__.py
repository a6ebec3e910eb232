"""The wire format: messages as bytes, the same on Spark, in logs and on a network. Specified in layout.py."""

from research.wire.decode import decode
from research.wire.encode import encode, encode_parts
from research.wire.layout import VERSION, Description, WireError
from research.wire.sizes import wire_size, wire_sizes

__all__ = ["VERSION", "Description", "WireError", "decode", "encode", "encode_parts", "wire_size", "wire_sizes"]
