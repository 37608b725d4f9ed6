"""The HTTP API: a module of endpoints for each resource, problems and OpenAPI for all."""
