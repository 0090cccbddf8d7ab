"""Check that replies have the fields and types of the OpenAPI document."""

from starlette.routing import compile_path

from capr.serve.problems import MEDIA
from capr.serve.routes import routers
from capr.serve.server_models import ProblemReply

ROUTES = [
    (compile_path(prefix + route.path)[0], method, getattr(route, "responses", {}))
    for router, prefix in routers()
    for route in router.routes
    for method in route.methods
]


def check_reply(method, path, reply):
    """Validate the JSON of a reply against the model of its route; the models reject fields that they do not list."""
    media = reply.headers.get("content-type", "").partition(";")[0]
    if method == "HEAD" or not reply.content:
        return
    if media == MEDIA:
        ProblemReply.model_validate(reply.json())
    elif media == "application/json" and path != "/api/openapi.json":
        responses = next(replies for regex, verb, replies in ROUTES if verb == method and regex.match(path))
        responses[reply.status_code]["model"].model_validate(reply.json())
