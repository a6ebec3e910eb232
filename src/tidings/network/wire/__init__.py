"""The wire format: messages as bytes, the same on Spark, in logs and on a network. Specified in layout.py."""

from tidings.network.wire.decode import decode
from tidings.network.wire.encode import encode, encode_parts
from tidings.network.wire.layout import VERSION, Description, WireError
from tidings.network.wire.sizes import wire_size, wire_sizes

__all__ = ["VERSION", "Description", "WireError", "decode", "encode", "encode_parts", "wire_size", "wire_sizes"]
