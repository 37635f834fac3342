"""From machine and model to launch settings: pure functions.

Calling this package calls `dsdoctor.recommend`, a function of the public API.
"""

from __future__ import annotations

from dsdoctor.callable_module import make_callable

make_callable(__name__, "dsdoctor.calls.recommend")
