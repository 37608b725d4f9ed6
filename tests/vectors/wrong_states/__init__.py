"""Clients whose rows go through wrong states: the traces alone must reject each.

Area `states` of the wrong clients: (name, plant), each a mistake of a plausible author.
"""

from . import wrong_answers, wrong_consents, wrong_delivery

WRONG_CLIENTS = (
    *wrong_answers.WRONG_CLIENTS,
    *wrong_delivery.WRONG_CLIENTS,
    *wrong_consents.WRONG_CLIENTS,
)
