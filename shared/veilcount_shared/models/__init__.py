"""Trust models: one module each, and the registry."""

from ..enums import Model
from .central import Central
from .local import Local
from .model import TrustModel as TrustModel
from .shuffled import Shuffled

TRUST_MODELS: dict[Model, TrustModel] = {
    Model.LOCAL: Local(),
    Model.SHUFFLED: Shuffled(),
    Model.CENTRAL: Central(),
}
PRICE_KEYS = tuple(dict.fromkeys(model.price_key for model in TRUST_MODELS.values()))
