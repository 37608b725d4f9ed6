"""Trust models: one module each, and the registry."""

from ..enums import Model
from .central import Central
from .local import Local
from .model import TrustModel as TrustModel

TRUST_MODELS: dict[Model, TrustModel] = {Model.LOCAL: Local(), Model.CENTRAL: Central()}
PRICE_KEYS = tuple(model.price_key for model in TRUST_MODELS.values())
