"""Oblivious HTTP [RFC 9458]: a request that its relay cannot read, and its gateway cannot place.

`encapsulation` and `hpke` need cryptography (the extra `relay`); all else the standard library.
"""
