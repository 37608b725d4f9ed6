"""The privacy notice of a definition: one text for people, wherever they read it.

`veilcount notice`, the consent page, the receipt and the dashboard show it, so that none of them
promises what another does not.
"""

from .messages import MESSAGES as MESSAGES
from .messages import RECEIPT as RECEIPT
from .messages import Count as Count
from .messages import Texts as Texts
from .statements import Notice as Notice
from .statements import NoticeText as NoticeText
from .statements import notice as notice
