"""Wire formats: strict encoding and decoding of batches; errors name the place."""

from .binary import decode_binary as decode_binary
from .binary import encode_binary as encode_binary
from .json_codec import decode_json as decode_json
from .json_codec import decode_verdicts as decode_verdicts
from .json_codec import encode_base64 as encode_base64
from .json_codec import encode_json as encode_json
from .json_codec import encode_verdicts as encode_verdicts
from .json_codec import json_to_binary as json_to_binary
from .version import BINARY_TYPE as BINARY_TYPE
from .version import JSON_TYPE as JSON_TYPE
from .version import MAX_BODY as MAX_BODY
from .version import VERSION as VERSION
