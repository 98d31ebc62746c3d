"""The HTTP gateway: an ASGI application over the verbs of an app's client.

`Gateway(app)` makes it from the table of `routes.py`. A route is a record: its path, the scope that it needs, the
types of its body and of its answers, and the function that answers. What stands before every route (who asks, may they,
how often, how large) is one chain in `chain.py`; the OpenAPI document is made from the same records.

The guide: docs/guide/http.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.web.gateway.asgi import Gateway
else:
    __getattr__ = lazily(__name__, {"Gateway": "fencerow.web.gateway.asgi"})

__all__ = ["Gateway"]
