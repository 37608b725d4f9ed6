"""The issuer of slot tokens: blind signatures for accounts, each within its caps."""
