"""Clients whose rows go through wrong states: the traces alone must reject each.

Area `states` of the wrong clients: (name, plant), each a mistake of a plausible author.
"""

from . import answers, consent_and_clocks, delivery

WRONG_CLIENTS = (
    *answers.WRONG_CLIENTS,
    *delivery.WRONG_CLIENTS,
    *consent_and_clocks.WRONG_CLIENTS,
)
