"""Tokens: an issuer's blind signature of one slot, which nobody can join to who asked for it."""

from ..limits import TOKEN_BYTES as TOKEN_BYTES
from .blind_rsa import BlindedMessage as BlindedMessage
from .blind_rsa import PublicKey as PublicKey
from .blind_rsa import blind as blind
from .blind_rsa import finalize as finalize
from .blind_rsa import verify as verify
from .key_list import check_key_list as check_key_list
from .key_list import decode_key_list as decode_key_list
from .key_list import digest as digest
from .key_list import encode_key as encode_key
from .key_list import encode_key_list as encode_key_list
from .key_list import key_list_name as key_list_name
from .key_list import parse_key as parse_key
from .slot_token import MAX_REQUESTS as MAX_REQUESTS
from .slot_token import SlotSecret as SlotSecret
from .slot_token import signed_message as signed_message
